package hip

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// Pieces never overlap, and everything is free again at the end.
func TestSlabsHandOutEveryByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const least = 16 * pageSize
		devices := 0
		s := slabs{
			least: least,
			grow: func(n int64) (*slab, error) {
				devices++
				return &slab{addr: uint64(devices) << 40, size: n}, nil
			},
			shrink: func(l *slab) error {
				if len(l.free) != 1 || l.free[0] != (hole{0, l.size}) {
					t.Fatalf("a slab is given back with %v free of %d", l.free, l.size)
				}
				devices--
				return nil
			},
		}
		type piece struct {
			l      *slab
			off, n int64
		}
		var live []piece
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				p := live[i]
				live = append(live[:i], live[i+1:]...)
				s.put(p.l, p.off, p.n)
				continue
			}
			n := rapid.Int64Range(1, 2*least).Draw(t, "bytes")
			l, off, err := s.take(n)
			if err != nil {
				t.Fatal(err)
			}
			if off%pageSize != 0 || off+n > l.size {
				t.Fatalf("%d bytes at %d of a slab of %d", n, off, l.size)
			}
			for _, p := range live {
				if p.l == l && off < p.off+p.n && p.off < off+n {
					t.Fatalf("[%d, %d) and [%d, %d) overlap", off, off+n, p.off, p.off+p.n)
				}
			}
			live = append(live, piece{l, off, n})
		}
		for _, p := range live {
			s.put(p.l, p.off, p.n)
		}
		for _, l := range s.all {
			if l.size != least || len(l.free) != 1 || l.free[0] != (hole{0, least}) {
				t.Fatalf("a slab of %d bytes is kept, with %v free", l.size, l.free)
			}
		}
	})
}

// A device that cannot let go of memory now keeps it for later.
func TestASlabThatCannotBeGivenBackIsUsedAgain(t *testing.T) {
	asked := 0
	s := slabs{
		least:  pageSize,
		grow:   func(n int64) (*slab, error) { asked++; return &slab{size: n}, nil },
		shrink: func(*slab) error { return errors.New("busy") },
	}
	for range 3 {
		l, off, err := s.take(5 * pageSize)
		if err != nil || off != 0 {
			t.Fatal(off, err)
		}
		s.put(l, off, 5*pageSize)
	}
	if asked != 1 {
		t.Errorf("the device was asked %d times, want once", asked)
	}
}
