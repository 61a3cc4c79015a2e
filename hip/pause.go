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

// Sleeping takes about 50 µs longer than asked for, which is the system's
// timer slack; so the longest pause is about 100 µs. The runtime's own timers
// are of no use here: in an idle process they are a millisecond apart.
const (
	pauseYields   = 32
	shortestSleep = 5 * time.Microsecond
	longestSleep  = 50 * time.Microsecond
)

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
