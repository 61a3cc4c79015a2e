package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Buckets is the number of buckets. Bucket i < Buckets-1 holds what is at most
// Bound(i) and above the bound before it; the last holds everything longer.
const Buckets = 26

// Bound is 1 µs doubled i times: 1 µs to about 17 s.
func Bound(i int) time.Duration { return time.Microsecond << i }

// Histogram is durations by bucket. The zero value is empty and ready for use
// by many goroutines.
type Histogram struct {
	counts [Buckets]atomic.Uint64
	sum    atomic.Int64
}

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	h.sum.Add(int64(d))
}

func bucket(d time.Duration) int {
	if d <= time.Microsecond {
		return 0
	}
	return min(bits.Len64(uint64((d-1)/time.Microsecond)), Buckets-1)
}

// Snapshot is the histogram as it stands; each count is exact, but they may be
// of slightly different moments.
func (h *Histogram) Snapshot() (s Snapshot) {
	s.Sum = time.Duration(h.sum.Load())
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	return s
}

// Snapshot is what a histogram held at one moment.
type Snapshot struct {
	Counts [Buckets]uint64
	Sum    time.Duration
}

// Add adds what o holds.
func (s *Snapshot) Add(o *Snapshot) {
	s.Sum += o.Sum
	for i, n := range o.Counts {
		s.Counts[i] += n
	}
}

// Count is how many durations were observed.
func (s *Snapshot) Count() (n uint64) {
	for _, c := range s.Counts {
		n += c
	}
	return n
}
