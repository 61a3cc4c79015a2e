//go:build !race

package plan

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// A round allocates nothing after the first: Start, MarkReady, Wait and
// NextRound use what the plan made. One long kernel marks, so that launches,
// which do allocate, are not counted.
func TestARoundAllocatesNothing(t *testing.T) {
	only(t, "gates that the test can mark itself", "host", "amd")
	const rounds = 5000
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, 3*4, 64)
		if err != nil {
			return err
		}
		chunks, err := schedule.Chunks(out.Rows(r.ID()*4, r.ID()*4+4).Window(), 1, schedule.Options{})
		if err != nil {
			return err
		}
		p, err := New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		mark := func(round uint64) { // as a kernel does
			tab := p.shared.tables[r.ID()]
			for c := range p.own {
				tab.mem.Word(tab.gate(p.first+c, kernels.GateWriters)).Add(1)
				tab.mem.Word(tab.gate(p.first+c, kernels.GateReady)).Store(round)
			}
		}
		round := func() error {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			mark(h.Round())
			if err := p.Wait(ctx); err != nil {
				return err
			}
			return p.NextRound(ctx)
		}
		for range 10 {
			if err := round(); err != nil {
				return err
			}
		}
		var before, after runtime.MemStats
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		runtime.ReadMemStats(&before)
		for range rounds {
			if err := round(); err != nil {
				return err
			}
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > rounds/10 {
			return fmt.Errorf("%d allocations in %d rounds", n, rounds)
		}
		return p.Close(ctx)
	})
}
