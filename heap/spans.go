package heap

import (
	"cmp"
	"slices"
)

// span is the bytes [off, off+n) of every rank's memory.
type span struct{ off, n int64 }

func (s span) end() int64 { return s.off + s.n }

// spans are free pieces in order of offset. No two touch: neighbours are one
// piece.
type spans []span

// take cuts n bytes from the first piece that has them, so that the same
// calls always give the same offsets.
func (f *spans) take(n int64) (off int64, ok bool) {
	i := slices.IndexFunc(*f, func(s span) bool { return s.n >= n })
	if i < 0 {
		return 0, false
	}
	s := &(*f)[i]
	off = s.off
	if s.off, s.n = s.off+n, s.n-n; s.n == 0 {
		*f = slices.Delete(*f, i, i+1)
	}
	return off, true
}

// put gives back what take gave.
func (f *spans) put(s span) {
	i, _ := slices.BinarySearchFunc(*f, s.off, func(p span, off int64) int { return cmp.Compare(p.off, off) })
	j := i
	if i > 0 && (*f)[i-1].end() == s.off {
		i--
		s = span{(*f)[i].off, (*f)[i].n + s.n}
	}
	if j < len(*f) && s.end() == (*f)[j].off {
		s.n += (*f)[j].n
		j++
	}
	*f = slices.Replace(*f, i, j, s)
}

// figures are the bytes of all pieces and of the largest.
func (f spans) figures() (total, largest int64) {
	for _, s := range f {
		total, largest = total+s.n, max(largest, s.n)
	}
	return total, largest
}
