package metrics

import (
	"context"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/histogram"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// The round whose share is measured: 64 chunks of 256 KiB on 4 ranks.
const (
	overheadRanks  = 4
	overheadChunks = 64 / overheadRanks
	overheadBytes  = 256 << 10
)

// operations counts what was observed of a world so far.
type operations struct {
	clocks   float64 // readings of the clock
	observed float64 // durations put into histograms
	counted  float64 // additions to counters
	marks    float64 // at each of which the view looks whether it stamps
}

func (o operations) minus(p operations) operations {
	return operations{o.clocks - p.clocks, o.observed - p.observed, o.counted - p.counted, o.marks - p.marks}
}

// count derives them from the figures themselves. Every gate that was found
// closed takes two readings, and a third when it is written; a delivery takes
// two at most; a preparation and a Wait two each, a Start one.
func count(w *rank.World) (o operations) {
	seen := plan.Observe(w)
	add := func(n uint64, clocks float64) {
		o.clocks += clocks * float64(n)
		o.observed += float64(n)
	}
	for _, q := range look(w) {
		add(q.Stats.GateWait.Count(), 3)
		add(q.Stats.Delivery.Count(), 2)
	}
	add(seen.Preparation.Count(), 2)
	add(seen.Wait.Count(), 2)
	for _, r := range seen.Ranks {
		o.clocks += float64(r.Rounds)
		o.counted += float64(r.Rounds)
		o.marks += float64(r.Marks)
	}
	return o
}

// BenchmarkOverhead multiplies what a round is observed with by what each such
// operation costs, and fails if that is 1% of the round's time, with metrics on
// and the timeline off. It reports both shares.
func BenchmarkOverhead(b *testing.B) {
	cfg := rank.Config{Ranks: overheadRanks, HeapBytes: overheadRanks*overheadChunks*overheadBytes + 1<<20, Platform: "host"}
	w, err := rank.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close(context.Background())
	var before, after operations
	var spent time.Duration
	err = w.Run(b.Context(), func(ctx context.Context, r *rank.Rank) error {
		p, out, err := overheadPlan(ctx, r)
		if err != nil {
			return err
		}
		for n := 0; ; n++ {
			if n == 1 && r.ID() == 0 { // the first round warms up
				before = count(w)
				b.ResetTimer()
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			began := time.Now()
			if err := overheadRound(ctx, r, p, out); err != nil {
				return err
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			if n > 0 && r.ID() == 0 {
				spent += time.Since(began)
			}
			if n == b.N {
				break
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		if r.ID() == 0 {
			b.StopTimer()
			after = count(w)
		}
		return p.Close(ctx)
	})
	if err != nil {
		b.Fatal(err)
	}
	ops, round := after.minus(before), float64(spent.Nanoseconds())
	clock, observe, addition, check := operationCosts()
	on := ops.clocks*clock + ops.observed*observe + ops.counted*addition
	off := ops.marks * check
	b.ReportMetric(100*on/round, "%metrics")
	b.ReportMetric(100*off/round, "%timeline-off")
	b.ReportMetric(ops.clocks/float64(b.N), "clocks/op")
	b.ReportMetric(ops.observed/float64(b.N), "observed/op")
	if on >= round/100 || off >= round/100 {
		b.Errorf("of a round of %.0f ns observing takes %.0f ns and looking for a timeline %.0f ns; the most is 1%%", round/float64(b.N), on/float64(b.N), off/float64(b.N))
	}
}

func overheadPlan(ctx context.Context, r *rank.Rank) (*plan.Plan, *heap.Tensor, error) {
	out, err := r.Zeros(ctx, heap.Uint8, r.Size()*overheadChunks, overheadBytes)
	if err != nil {
		return nil, nil, err
	}
	chunks, err := schedule.Chunks(out.Rows(r.ID()*overheadChunks, (r.ID()+1)*overheadChunks).Window(), 1, schedule.Options{})
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.New(ctx, r, out, chunks)
	return p, out, err
}

func overheadRound(ctx context.Context, r *rank.Rank, p *plan.Plan, out *heap.Tensor) error {
	h, err := p.Start(ctx)
	if err != nil {
		return err
	}
	w := out.Rows(r.ID()*overheadChunks, (r.ID()+1)*overheadChunks).Window()
	err = r.Launch(kernels.Tiled, kernels.Grid(1), h, out, w.Offset, overheadChunks, overheadBytes, w.Pitch, 1, overheadBytes, 1, 1, 7)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// operationCosts are ns for a reading of the clock, an observed duration, an
// addition to a counter, and a look whether there is a timeline.
func operationCosts() (clock, observe, addition, check float64) {
	var h histogram.Histogram
	var tally rank.RankTally
	var trace *hip.Memory
	return cost(func() { hip.Clock() }), cost(func() { h.Observe(time.Microsecond) }), cost(func() { tally.Rounds.Add(1) }),
		cost(func() {
			if trace != nil {
				trace.Word(0).Store(1)
			}
		})
}

// cost is what f takes, in ns, the call included.
func cost(f func()) float64 {
	const times = 1 << 18
	best := time.Duration(1 << 62)
	for range 5 {
		began := time.Now()
		for range times {
			f()
		}
		best = min(best, time.Since(began))
	}
	return float64(best.Nanoseconds()) / times
}
