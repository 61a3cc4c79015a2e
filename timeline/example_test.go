package timeline_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/timeline"
)

// A world whose Config has a Recorder tells it of every round.
func ExampleRecorder() {
	var rec timeline.Recorder
	cfg := rank.Config{Ranks: 2, HeapBytes: 1 << 20, Platform: "host", Timeline: &rec}
	err := rank.Run(context.Background(), cfg, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, r.Size(), 256)
		if err != nil {
			return err
		}
		p, err := plan.NewAllGather(ctx, r, out, nil)
		if err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		w := out.Rows(r.ID(), r.ID()+1).Window()
		if err := r.Launch(kernels.Fill, kernels.Grid(1), h, out, w.Offset, 256, 1, 256, 1, p.FirstChunk()); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		return p.Close(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, round := range rec.Rounds() {
		for _, c := range round.Chunks {
			k := c.Copies[0]
			fmt.Println("to rank", k.Peer, c.Marked <= k.Began, k.Began <= k.Ended, k.Ended <= k.Arrived)
		}
	}
	var trace bytes.Buffer
	fmt.Println(rec.WriteTrace(&trace), trace.Len() > 0) // for ui.perfetto.dev
	// Unordered output:
	// to rank 1 true true true
	// to rank 0 true true true
	// <nil> true
}
