package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync/atomic"

	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// collection forces collections one after the other while a plan sends much in
// one copy, and reports the longest that one of them waited for all goroutines
// to stop. The machine, too, can make it wait; an engine that does not give
// way does so in every copy. So of a few copies the best counts.
func collection(s *suite) (err error) {
	bytes := pick(s, int64(16), 256, 256) << 20
	sh := shape{ranks: 1, bytes: bytes}
	w, err := s.planned(2, bytes, func(r int) schedule.Schedule {
		return map[int]schedule.Schedule{0: sh.schedule(0)}[r]
	})
	if err != nil {
		return err
	}
	defer w.shut(&err)
	best, most := math.Inf(1), 0.0
	for range s.turns() {
		stop, n, err := w.stopDuringCopy()
		if err != nil {
			return err
		}
		best, most = min(best, stop), max(most, n)
	}
	name := fmt.Sprintf("a copy of %d MiB", bytes>>20)
	if err := s.emit(s.result(name, "ms to stop", []float64{1e3 * best}).atMost(5)); err != nil {
		return err
	}
	return s.emit(s.result(name, "collections", []float64{most}))
}

// stopDuringCopy is the longest that a collection waited during a round, in
// seconds, and how many there were.
func (w *world) stopDuringCopy() (longest, collections float64, err error) {
	var copying atomic.Bool
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) error {
			p := w.plans[r.ID()]
			if r.ID() == 0 {
				copying.Store(true)
				defer copying.Store(false)
				started <- struct{}{}
			}
			if err := start(ctx, r, p, markAll); err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			copying.Store(false)
			return p.NextRound(ctx)
		})
	}()
	select {
	case <-started:
	case err := <-ended:
		return 0, 0, err
	}
	before := stops()
	for ; copying.Load(); collections++ {
		runtime.GC()
	}
	longest = longestStop(before, stops())
	return longest, collections, <-ended
}

// stops is how often collections have taken how long to stop everything.
func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// longestStop is the upper bound in seconds of the longest stop between two
// histograms.
func longestStop(before, after *metrics.Float64Histogram) (top float64) {
	for i, n := range after.Counts {
		if n > before.Counts[i] {
			top = after.Buckets[i+1]
		}
	}
	return top
}
