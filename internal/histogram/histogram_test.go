package histogram

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestADurationIsInTheFirstBucketWhoseBoundIsNotBelowIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, Buckets-2).Draw(t, "bound")
		d := Bound(i) + time.Duration(rapid.IntRange(-1, 1).Draw(t, "beside"))
		if rapid.Bool().Draw(t, "anywhere") {
			d = time.Duration(rapid.Int64Range(-1, int64(time.Minute)).Draw(t, "d"))
		}
		want := 0
		for want < Buckets-1 && d > Bound(want) {
			want++
		}
		var h Histogram
		h.Observe(d)
		s := h.Snapshot()
		if s.Counts[want] != 1 || s.Count() != 1 || s.Sum != d {
			t.Fatalf("%v: want it in bucket %d, found %v and a sum of %v", d, want, s.Counts, s.Sum)
		}
	})
}

func TestAddIsAsIfOneHistogramHadSeenBoth(t *testing.T) {
	var a, b, both Histogram
	for i := range 40 {
		d := time.Duration(i*i*i) * time.Microsecond
		[]*Histogram{&a, &b}[i%2].Observe(d)
		both.Observe(d)
	}
	sum, other := a.Snapshot(), b.Snapshot()
	sum.Add(&other)
	if sum != both.Snapshot() {
		t.Errorf("the sum is %v, one histogram has %v", sum, both.Snapshot())
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n != 0 {
		t.Errorf("Observe allocates %v times", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for b.Loop() {
		h.Observe(37 * time.Microsecond)
	}
}
