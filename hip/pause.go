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

// Sleeping takes about 50 µs longer than asked for, which is the timer slack
// that the system gives a thread; so the longest pause is about 100 µs. The
// runtime's own timers are of no use here: in an idle process they are a
// millisecond apart.
const (
	pauseYields   = 32
	shortestSleep = 5 * time.Microsecond
	longestSleep  = 50 * time.Microsecond
)

// punctually locks the goroutine to a thread that sleeps no longer than it is
// told to, until leisurely is called: a goroutine that ends while it is locked
// takes its thread with it, and the next one has to be made.
func punctually() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // else its pauses are longer
}

func leisurely() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // what it was
	runtime.UnlockOSThread()
}

func (p *pause) wait() {
	if p.yields < pauseYields {
		p.yields++
		runtime.Gosched()
		return
	}
	p.sleep = min(max(2*p.sleep, shortestSleep), longestSleep)
	t := unix.NsecToTimespec(int64(p.sleep))
	_ = unix.Nanosleep(&t, nil) // one that a signal ends is a shorter pause
}
