package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// allocations counts those of all goroutines together in rounds of Start, a
// mark for every chunk, Wait and NextRound. Launches allocate; so here the host
// marks, through the handle, as a kernel does.
func allocations(s *suite) error {
	for _, c := range []shape{{ranks: 2, chunks: 1}, {ranks: 4, chunks: 16}} {
		c.bytes = int64(chunkBytes * c.chunks)
		each, err := s.allocationsPerRound(c)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d ranks × %s", c.ranks, count(c.chunks, "chunk"))
		if err := s.emit(s.result(name, "allocations per round", each).atMost(0)); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) allocationsPerRound(sh shape) (each []float64, err error) {
	w, err := s.planned(sh.ranks, sh.total(), sh.schedule)
	if err != nil {
		return nil, err
	}
	defer w.shut(&err)
	n := pick(s, 50, 2000, 10000)
	for range s.turns() {
		var before, after runtime.MemStats
		_, err := w.timed(func(ctx context.Context, r *rank.Rank) error {
			for i := range n + 1 {
				if i == 1 && r.ID() == 0 { // the first round of a Run may allocate
					runtime.ReadMemStats(&before)
				}
				if err := markedRound(ctx, w.plans[r.ID()]); err != nil {
					return err
				}
			}
			if r.ID() == 0 {
				runtime.ReadMemStats(&after)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		each = append(each, float64((after.Mallocs-before.Mallocs)/uint64(n)))
	}
	return each, nil
}

func markedRound(ctx context.Context, p *plan.Plan) error {
	h, err := p.Start(ctx)
	if err != nil {
		return err
	}
	if err := markByHost(h); err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		return err
	}
	return p.NextRound(ctx)
}

// markByHost marks every chunk of the handle's rank once.
func markByHost(h plan.Handle) error {
	handle, at, err := hip.Resolve(h.Addr(), kernels.HandleChunkWords*8)
	if err != nil {
		return err
	}
	defer handle.Release()
	word := func(i int64) uint64 { return handle.Word(at + 8*i).Load() }
	first, own := int64(word(kernels.HandleFirst)), int64(word(kernels.HandleOwn))
	gates, row, err := hip.Resolve(word(kernels.HandleGates), (first+own)*kernels.GateRow)
	if err != nil {
		return err
	}
	defer gates.Release()
	for c := first; c < first+own; c++ {
		gates.Word(row + c*kernels.GateRow + kernels.GateWriters).Add(1)
		gates.Word(row + c*kernels.GateRow + kernels.GateReady).Store(h.Round())
	}
	return nil
}
