package inject

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Wakes, if set, is given every wake-up of a waiter by a write to its word. It
// must have each delivered, at once or later, and may do so more than once. It
// is called under locks and must not block.
var Wakes atomic.Pointer[func(deliver func())]

// Late delivers wake-ups after a random time of up to most, and so out of
// order; every fourth comes twice, the second time for nothing. A doorbell that
// is rung is then seen late as well. stop ends it, once everything is
// delivered.
func Late(seed uint64, most time.Duration) (stop func()) {
	l := &late{most: most, rnd: rand.New(rand.NewPCG(seed, 0))}
	f := l.wake
	Wakes.Store(&f)
	return func() {
		Wakes.CompareAndSwap(&f, nil)
		l.end()
	}
}

type late struct {
	most  time.Duration
	under sync.WaitGroup // deliveries that are under way

	mu    sync.Mutex
	rnd   *rand.Rand
	ended bool // for who found the hook just before it was taken away
}

func (l *late) wake(deliver func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		deliver()
		return
	}
	l.later(deliver)
	if l.rnd.IntN(4) == 0 {
		l.later(deliver)
	}
}

func (l *late) later(deliver func()) {
	l.under.Add(1)
	time.AfterFunc(time.Duration(l.rnd.Int64N(int64(l.most)+1)), func() {
		defer l.under.Done()
		deliver()
	})
}

func (l *late) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.under.Wait()
}
