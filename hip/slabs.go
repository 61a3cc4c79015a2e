package hip

import (
	"cmp"
	"slices"
	"sync"
)

// slabs hands out pieces of large allocations, so that a device is asked for
// memory seldom, and never while it must not be.
type slabs struct {
	least  int64                        // bytes of a slab
	grow   func(n int64) (*slab, error) // asks the device for a slab of n bytes
	shrink func(*slab) error            // gives it back

	mu  sync.Mutex
	all []*slab
}

type slab struct {
	addr  uint64
	bytes []byte // where the host reaches them
	size  int64
	free  []hole // in order; no two touch
}

type hole struct{ off, n int64 }

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// take returns n bytes, whole pages of a slab.
func (s *slabs) take(n int64) (*slab, int64, error) {
	n = roundUp(n, pageSize)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if off, ok := l.take(n); ok {
			return l, off, nil
		}
	}
	l, err := s.grow(max(n, s.least))
	if err != nil {
		return nil, 0, err
	}
	l.free = []hole{{0, l.size}}
	s.all = append(s.all, l)
	off, _ := l.take(n)
	return l, off, nil
}

// put gives back what take gave, and empty slabs to the device if it lets go of
// them now. Slabs of the least size are kept for who comes next.
func (s *slabs) put(l *slab, off, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.put(hole{off, roundUp(n, pageSize)})
	s.all = slices.DeleteFunc(s.all, func(l *slab) bool {
		return l.size > s.least && len(l.free) == 1 && l.free[0].n == l.size && s.shrink(l) == nil
	})
}

func (l *slab) take(n int64) (int64, bool) {
	for i := range l.free {
		h := &l.free[i]
		if h.n < n {
			continue
		}
		off := h.off
		if h.off, h.n = h.off+n, h.n-n; h.n == 0 {
			l.free = slices.Delete(l.free, i, i+1)
		}
		return off, true
	}
	return 0, false
}

func (l *slab) put(h hole) {
	i, _ := slices.BinarySearchFunc(l.free, h.off, func(f hole, off int64) int { return cmp.Compare(f.off, off) })
	l.free = slices.Insert(l.free, i, h)
	if i+1 < len(l.free) && h.off+h.n == l.free[i+1].off {
		l.free[i].n += l.free[i+1].n
		l.free = slices.Delete(l.free, i+1, i+2)
	}
	if i > 0 && l.free[i-1].off+l.free[i-1].n == h.off {
		l.free[i-1].n += l.free[i].n
		l.free = slices.Delete(l.free, i, i+1)
	}
}
