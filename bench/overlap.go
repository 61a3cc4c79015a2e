package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// overlap compares the saving of a plan with that of a producer goroutine and a
// copier goroutine, with chunks that take as long to compute as to copy. What
// can be saved is the shorter of both. The two are compared in the fastest turn
// of each part, since a core that something else uses leaves nothing to overlap
// with.
func overlap(s *suite) error {
	bytes := pick(s, int64(2), 64, 64) << 20 // in a round, however many chunks it has
	for _, chunks := range pick(s, []int{32}, []int{8, 32, 128}, []int{8, 32, 64, 128, 512}) {
		samples, err := s.overlapping(bytes, chunks)
		if err != nil {
			return fmt.Errorf("%d chunks: %w", chunks, err)
		}
		plan := saved(samples[0], samples[1], samples[2])
		hand := saved(samples[0], samples[3], samples[4])
		var best [5][]float64
		for i := range best {
			best[i] = []float64{slices.Min(samples[i])}
		}
		byHand := ratios(saved(best[0], best[1], best[2]), saved(best[0], best[3], best[4]))
		name := fmt.Sprintf("%d chunks of %d KiB", chunks, bytes/int64(chunks)>>10)
		r := s.result(name, "×by hand", byHand)
		if chunks >= 32 {
			r = r.atLeast(0.95)
		}
		for _, r := range []result{r,
			s.result(name, "of the ideal", plan),
			s.result(name+", by hand", "of the ideal", hand)} {
			if err := s.emit(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlapping is the seconds, turn by turn, of computing alone; of a plan's
// copying, and of both together; and of the same two by hand.
func (s *suite) overlapping(bytes int64, chunks int) (samples [][]float64, err error) {
	sh := shape{ranks: 1, bytes: bytes, chunks: chunks}
	w, err := s.planned(2, bytes, func(r int) schedule.Schedule {
		return map[int]schedule.Schedule{0: sh.schedule(0)}[r]
	})
	if err != nil {
		return nil, err
	}
	defer w.shut(&err)
	alone := func(steps int) (float64, error) {
		began := time.Now()
		for range chunks {
			compute(steps)
		}
		return time.Since(began).Seconds(), nil
	}
	copying := math.Inf(1)
	for range 5 {
		took, err := w.produced(0)
		if err != nil {
			return nil, err
		}
		copying = min(copying, took)
	}
	steps := stepsFor(time.Duration(copying / float64(chunks) * 1e9))
	return takeTurns(2*s.turns(),
		func() (float64, error) { return alone(steps) },
		func() (float64, error) { return w.produced(0) },
		func() (float64, error) { return w.produced(steps) },
		func() (float64, error) { return w.byHand(chunks, 0), nil },
		func() (float64, error) { return w.byHand(chunks, steps), nil })
}

// saved is how much of the shorter part is saved in each turn.
func saved(computing, copying, together []float64) []float64 {
	parts := make([]float64, len(together))
	for i := range parts {
		parts[i] = (computing[i] + copying[i] - together[i]) / min(computing[i], copying[i])
	}
	return parts
}

// produced is the seconds from a round's Start to the end of its Wait on rank
// 0, whose producer computes so many steps for each chunk.
func (w *world) produced(steps int) (took float64, err error) {
	producer := &kernels.Kernel{Name: "produce", Go: func(t *hip.Thread) {
		v := kernels.NewView(t, t.Arg(0))
		for c := range v.Own() {
			compute(steps)
			v.MarkReady(v.First() + c)
		}
	}}
	err = w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) error {
		p := w.plans[r.ID()]
		began := time.Now()
		if err := start(ctx, r, p, producer); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if r.ID() == 0 {
			took = time.Since(began).Seconds()
		}
		return p.NextRound(ctx)
	})
	return took, err
}

// byHand is the seconds that a producer and a copier goroutine take for the
// same.
func (w *world) byHand(chunks, steps int) float64 {
	src, dst := w.bytes(0), w.bytes(1)
	ready, done := make(chan int, chunks), make(chan struct{})
	each := len(src) / chunks
	began := time.Now()
	go func() {
		for c := range ready {
			copy(dst[c*each:(c+1)*each], src[c*each:(c+1)*each])
		}
		close(done)
	}()
	produced := make(chan struct{})
	go func() {
		for c := range chunks {
			compute(steps)
			ready <- c
		}
		close(ready)
		close(produced)
	}()
	<-produced
	<-done
	return time.Since(began).Seconds()
}
