package bench

import (
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

const (
	bigCopy   = 256 << 20            // bytes
	stopLimit = 5 * time.Millisecond // for a collection to have stopped everything
	tries     = 5                    // copies in which to meet the limit
)

// BenchmarkCollectionDuringACopy forces collections one after the other while
// a plan sends 256 MiB in one copy, and reports the longest that one of them
// waited for all goroutines to stop. The machine, too, can make it wait; an
// engine that does not give way does so in every copy. So of a few copies the
// best counts.
func BenchmarkCollectionDuringACopy(b *testing.B) {
	best, most := time.Duration(math.MaxInt64), 0
	var copying atomic.Bool
	marked, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- run(context.Background(), 2, bigCopy+1<<20, func(ctx context.Context, r *rank.Rank) error {
			return sendBig(ctx, r, tries*b.N, marked, &copying)
		})
	}()
	for range tries * b.N {
		select {
		case <-marked:
		case err := <-done:
			b.Fatal(err)
		}
		before, n := stops(), 0
		for ; copying.Load(); n++ {
			runtime.GC()
		}
		most = max(most, n)
		best = min(best, longest(before, stops()))
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(1e3*best.Seconds(), "stop-ms")
	b.ReportMetric(float64(most), "collections/copy")
	if best > stopLimit {
		b.Errorf("a collection waits up to %v for the engine; the limit is %v", best, stopLimit)
	}
}

// markFirst is a kernel that marks its rank's first chunk and writes nothing.
var markFirst = &kernels.Kernel{Name: "mark_first", Go: func(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	v.MarkReady(v.First())
}}

// sendBig sends one big chunk from rank 0 in each of so many rounds. From
// marked's receiver on, copying tells whether the round goes on.
func sendBig(ctx context.Context, r *rank.Rank, rounds int, marked chan<- struct{}, copying *atomic.Bool) error {
	out, err := r.Zeros(ctx, heap.Uint8, bigCopy)
	if err != nil {
		return err
	}
	var chunks schedule.Schedule
	if r.ID() == 0 {
		if chunks, err = schedule.Whole(out.Window(), 1, schedule.Options{}); err != nil {
			return err
		}
	}
	p, err := plan.New(ctx, r, out, chunks)
	if err != nil {
		return err
	}
	for round := 1; ; round++ {
		handle, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			copying.Store(true)
			marked <- struct{}{}
			if err := r.Launch(markFirst, kernels.Grid(1), handle); err != nil {
				return err
			}
		}
		err = p.Wait(ctx)
		if r.ID() == 0 {
			copying.Store(false)
		}
		if err != nil {
			return err
		}
		if round == rounds {
			return p.Close(ctx)
		}
		if err := p.NextRound(ctx); err != nil {
			return err
		}
	}
}

// stops is how often collections have taken how long to stop everything.
func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// longest is the upper bound of the longest stop between two histograms.
func longest(before, after *metrics.Float64Histogram) time.Duration {
	top := 0.0
	for i, n := range after.Counts {
		if n > before.Counts[i] {
			top = after.Buckets[i+1]
		}
	}
	return time.Duration(top * float64(time.Second))
}
