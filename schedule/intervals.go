package schedule

// intervals is a set of intervals of small integers that tells whether any of
// them meets another. Those that begin before its end, less those that end at
// or before its beginning, are the ones that meet it, so two running counts
// are enough.
type intervals struct{ begins, ends sums }

func newIntervals(n int) intervals { return intervals{make(sums, n+1), make(sums, n+1)} }

// count adds d times the interval [lo, hi).
func (v intervals) count(lo, hi int, d int32) {
	v.begins.add(lo, d)
	v.ends.add(hi, d)
}

// meets reports whether an interval of the set meets [lo, hi).
func (v intervals) meets(lo, hi int) bool {
	return v.begins.before(hi) > v.ends.before(lo+1)
}

// sums is a Fenwick tree: counts at positions, and the sum of those before one
// in logarithmic time.
type sums []int32

func (s sums) add(i int, d int32) {
	for i++; i < len(s); i += i & -i {
		s[i] += d
	}
}

func (s sums) before(i int) int32 {
	var n int32
	for ; i > 0; i -= i & -i {
		n += s[i]
	}
	return n
}
