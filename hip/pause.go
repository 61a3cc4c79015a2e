package hip

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A pause is what lies between two looks at something that nobody tells of: it
// gives way a few times, then sleeps longer each time. The zero value is the
// first.
type pause struct {
	yields int
	sleep  time.Duration
}

// The system lets a thread oversleep by a slack of 50 µs, so a pause does
// without. The runtime's own timers are of no use here: in an idle process they
// are a millisecond apart.
const (
	pauseYields   = 32
	shortestSleep = 5 * time.Microsecond
	longestSleep  = 25 * time.Microsecond
)

func (p *pause) wait() {
	if p.yields < pauseYields {
		p.yields++
		runtime.Gosched()
		return
	}
	// What one waits for comes late by about a fifth of the time so far.
	p.sleep = min(max(p.sleep+p.sleep/4, shortestSleep), longestSleep)
	nap(p.sleep)
}

// nap sleeps without slack, which is the thread's and is as before afterwards.
// The goroutine keeps the thread only for the nap: while it is bound to one,
// giving way to another goroutine takes two switches of threads.
func nap(d time.Duration) {
	const least, usual = 1, 0
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, least, 0, 0, 0) // else the nap is longer
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // one that a signal ends is shorter
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usual, 0, 0, 0)
}
