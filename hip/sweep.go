package hip

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A device that writes a word of pinned host memory tells nobody. So while
// waiters watch such words, one goroutine looks at all of them, with a pause
// that grows to 25 µs while nothing changes, and wakes the waiters of those
// that have changed.
type sweeper struct {
	pinned atomic.Pointer[[]addressRange] // memory that devices write

	mu       sync.Mutex
	words    map[*Word]sweptWord
	sweeping bool
}

type sweptWord struct {
	last     uint64
	watchers int
}

type addressRange struct{ lo, hi uintptr }

var sweep = sweeper{words: map[*Word]sweptWord{}}

// cover has words of these bytes swept from now on.
func (s *sweeper) cover(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := append(slices.Clone(s.ranges()), rangeOf(b))
	s.pinned.Store(&next)
}

// uncover ends cover.
func (s *sweeper) uncover(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := rangeOf(b)
	next := slices.DeleteFunc(slices.Clone(s.ranges()), func(o addressRange) bool { return o == r })
	s.pinned.Store(&next)
}

func rangeOf(b []byte) addressRange {
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return addressRange{lo, lo + uintptr(len(b))}
}

func (s *sweeper) ranges() []addressRange {
	if p := s.pinned.Load(); p != nil {
		return *p
	}
	return nil
}

// covers says whether devices write the word.
func (s *sweeper) covers(w *Word) bool {
	at := uintptr(unsafe.Pointer(w))
	for _, r := range s.ranges() {
		if r.lo <= at && at < r.hi {
			return true
		}
	}
	return false
}

// watch has the waiters of a word woken when it changes. Who calls it looks at
// the word afterwards.
func (s *sweeper) watch(w *Word) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.words[w]
	if !ok {
		t.last = w.Load()
	}
	t.watchers++
	s.words[w] = t
	if !s.sweeping {
		s.sweeping = true
		go runSweep() // a method would need an allocation
	}
}

func (s *sweeper) unwatch(w *Word) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.words[w]
	if t.watchers--; t.watchers > 0 {
		s.words[w] = t
	} else {
		delete(s.words, w)
	}
}

func runSweep() { sweep.run() }

// run ends when nothing is watched.
func (s *sweeper) run() {
	var p pause
	for {
		changed, left := s.look()
		if !left {
			return
		}
		if changed {
			p = pause{}
		}
		p.wait()
	}
}

func (s *sweeper) look() (changed, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w, t := range s.words {
		if v := w.Load(); v != t.last {
			t.last, changed = v, true
			s.words[w] = t
			wake(w)
		}
	}
	s.sweeping = len(s.words) > 0
	return changed, s.sweeping
}
