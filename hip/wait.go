package hip

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/triggeredplans/sluice/internal/inject"
)

// A Waiter parks one goroutine until a word that it watches is written or
// somebody calls Wake. The order that loses no wake-up is: Watch, look at the
// word, Park. A woken waiter looks again; wake-ups may be spurious.
type Waiter struct {
	ch      chan struct{}
	watches [maxWatched]watch
	n       int
	polls   bool
	pause   pause
	glances *time.Timer     // nil unless the waiter glances
	timer   *time.Timer     // for the next one that does
	spins   uint            // so far
	shy     int             // waits that are not to spin
	bound   <-chan struct{} // a context's Done: its end calls Wake
	timed   bool
	written atomic.Int64 // when a watched word was first written, if timed
}

// maxWatched bounds the words that one waiter watches at a time.
const maxWatched = 6

type watch struct {
	word       *Word
	waiter     *Waiter
	prev, next *watch
	swept      bool // the word is in memory that devices write
}

// NewWaiter returns a waiter that watches nothing.
func NewWaiter() *Waiter { return &Waiter{ch: make(chan struct{}, 1)} }

// NewTimedWaiter returns a waiter that also notes when the word that it watches
// is written, for WrittenAt.
func NewTimedWaiter() *Waiter {
	w := NewWaiter()
	w.timed = true
	return w
}

// bind has the end of ctx wake w, so that a Park under ctx need not watch it. It
// lasts until unbind is called.
func (w *Waiter) bind(ctx context.Context) (unbind func() bool) {
	w.bound = ctx.Done()
	return context.AfterFunc(ctx, w.Wake)
}

// WrittenAt is the Clock when a watched word was first written since the last
// WrittenAt; 0 if none was written while it was watched.
func (w *Waiter) WrittenAt() int64 { return w.written.Swap(0) }

// Watch adds a word to those whose writes wake w; at most six at a time.
func (w *Waiter) Watch(word *Word) {
	if w.n == maxWatched {
		panic("hip: a waiter watches at most six words")
	}
	t := &w.watches[w.n]
	w.n++
	t.word, t.waiter = word, w
	b := bucketOf(word)
	b.mu.Lock()
	t.prev, t.next = nil, b.head
	if b.head != nil {
		b.head.prev = t
	}
	b.head = t
	b.watching.Add(1)
	b.mu.Unlock()
	if sweep.covers(word) {
		t.swept = true
		sweep.watch(word)
	}
}

// Poll has every Park until Unwatch end by itself, after a pause that grows to
// 25 µs: for what the host is not told of and must look at again.
func (w *Waiter) Poll() {
	if !w.polls {
		w.polls, w.pause = true, pause{}
	}
}

// Glance has every Park until Unwatch end by itself after 5 ms, and is for what
// happens seldom and costs something to look at. A wake-up ends it earlier.
func (w *Waiter) Glance() {
	if w.timer == nil {
		w.timer = time.NewTimer(glanceEvery)
	}
	w.glances = w.timer
}

const glanceEvery = 5 * time.Millisecond

// Unwatch forgets every watched word. A wake-up that is already on its way may
// still end the next Park.
func (w *Waiter) Unwatch() {
	for i := range w.n {
		t := &w.watches[i]
		b := bucketOf(t.word)
		b.mu.Lock()
		if t.prev != nil {
			t.prev.next = t.next
		} else {
			b.head = t.next
		}
		if t.next != nil {
			t.next.prev = t.prev
		}
		b.watching.Add(-1)
		b.mu.Unlock()
		if t.swept {
			sweep.unwatch(t.word)
		}
		*t = watch{}
	}
	w.n = 0
	w.polls, w.glances = false, nil
}

// Wake ends w's current or next Park. It may be called by anyone, at any time.
func (w *Waiter) Wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// Park waits until a watched word is written, Wake is called or ctx ends, and
// returns ctx's cause in the last case. After Poll or Glance it may end without
// either.
func (w *Waiter) Park(ctx context.Context) error {
	select {
	case <-w.ch:
		return nil
	default:
	}
	if w.polls {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.pause.wait()
		return nil
	}
	done := ctx.Done()
	if w.glances != nil {
		w.glances.Reset(glanceEvery)
		select {
		case <-w.ch:
		case <-w.glances.C:
		case <-done:
			return context.Cause(ctx)
		}
		return nil
	}
	if done == w.bound { // a plain receive costs less than a select
		if ctx.Err() == nil {
			<-w.ch
			return nil
		}
		return context.Cause(ctx)
	}
	select {
	case <-w.ch:
		return nil
	case <-done:
		return context.Cause(ctx)
	}
}

// Await waits until ready(word's value) holds or ctx ends. It spins, and then
// parks w, which must watch nothing and may be woken early by Wake: stop, if
// not nil, is asked before every park and ends the wait when it returns an
// error.
func (w *Waiter) Await(ctx context.Context, word *Word, ready func(uint64) bool, stop func() error) error {
	if w.Spin(func() bool { return ready(word.Load()) }) {
		return nil
	}
	w.Watch(word)
	defer w.Unwatch()
	for {
		if ready(word.Load()) {
			return nil
		}
		if stop != nil {
			if err := stop(); err != nil {
				return err
			}
		}
		if err := w.Park(ctx); err != nil {
			return err
		}
	}
}

// Spin looks a few times whether ready holds, giving way to other goroutines
// between two looks, and reports whether it came to hold. Where
// giving way takes long, others want the processor, and who spins would queue
// up behind them, while who is parked runs as soon as it is woken: then the
// waiter's next waits do not spin.
func (w *Waiter) Spin(ready func() bool) bool {
	if ready() {
		return true
	}
	if w.shy > 0 {
		w.shy--
		return false
	}
	if w.spins++; w.spins%timedSpins == 0 {
		began := Clock()
		runtime.Gosched()
		if Clock()-began > longYield {
			w.shy = shyWaits
			return ready()
		}
	}
	for range spinLooks {
		runtime.Gosched()
		if ready() {
			return true
		}
	}
	return false
}

const (
	spinLooks  = 3       // more are slower: all goroutines that give way queue up at one lock
	timedSpins = 4       // one in so many is timed: to read a clock takes as long as to give way
	longYield  = 1000000 // ns; a goroutine that computes keeps the processor for 10 ms
	shyWaits   = 100
)

// The parking lot: watches by the address of their word. A writer that finds a
// bucket's count at zero goes on without the lock; since the count is raised
// before the watcher looks at the word, one of the two sees the other.
type bucket struct {
	watching atomic.Int64
	mu       sync.Mutex
	head     *watch
	_        [40]byte
}

var lot [512]bucket

func bucketOf(w *Word) *bucket {
	h := uint64(uintptr(unsafe.Pointer(w))) >> 3 * 0x9e3779b97f4a7c15
	return &lot[h>>55]
}

// wake wakes who watches w and reports whether anybody does.
func wake(w *Word) (woke bool) {
	b := bucketOf(w)
	if b.watching.Load() == 0 {
		return false
	}
	b.mu.Lock()
	for t := b.head; t != nil; t = t.next {
		if t.word == w {
			woke = true
			if t.waiter.timed {
				t.waiter.written.CompareAndSwap(0, Clock())
			}
			if late := inject.Wakes.Load(); late != nil {
				(*late)(t.waiter.Wake)
			} else {
				t.waiter.Wake()
			}
		}
	}
	b.mu.Unlock()
	return woke
}
