package plan_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// A tiled producer writes each rank's rows of a tensor, and every rank has all
// rows at the end of every round. The schedule takes the producer's own mapping
// from steps to tiles.
func Example() {
	const (
		rows, cols   = 64, 96 // of each rank, in elements of 2 bytes
		tileM, tileN = 16, 32
		programs     = 3
		group        = 2 // tile rows that the producer walks together
		seed         = 7
	)
	order := func(step int) int { return kernels.TileOf(step, rows/tileM, cols/tileN, group) }

	err := rank.Run(context.Background(), rank.Config{Ranks: 4, Platform: "host"}, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.BFloat16, r.Size()*rows, cols)
		if err != nil {
			return err
		}
		all := make([]byte, out.Size())
		mine := out.Rows(r.ID()*rows, (r.ID()+1)*rows).Window()
		chunks, err := schedule.TileChunks(mine, schedule.Tile{Rows: tileM, Cols: tileN}, programs, schedule.Options{Order: order})
		if err != nil {
			return err
		}
		p, err := plan.New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		for {
			handle, err := p.Start(ctx)
			if err != nil {
				return err
			}
			err = r.Launch(kernels.Tiled, kernels.Grid(programs), handle, out,
				mine.Offset, rows, 2*cols, mine.Pitch, tileM, 2*tileN, programs, group, seed)
			if err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			if err := out.Read(all); err != nil {
				return err
			}
			wrong, part := 0, len(all)/r.Size()
			for peer := range r.Size() {
				wrong += kernels.CheckPattern(all[peer*part:(peer+1)*part], kernels.SeedOf(seed, peer, p.Round()), uint64(peer*part))
			}
			if r.ID() == 0 {
				fmt.Printf("round %d: %d chunks, %d wrong bytes\n", p.Round(), p.Chunks(), wrong)
			}
			if p.Round() == 3 {
				return p.Close(ctx)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// round 1: 16 chunks, 0 wrong bytes
	// round 2: 16 chunks, 0 wrong bytes
	// round 3: 16 chunks, 0 wrong bytes
}

// Without chunks, each rank sends its rows as one chunk that is marked once.
func ExampleNewAllGather() {
	err := rank.Run(context.Background(), rank.Config{Ranks: 3, Platform: "host"}, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, r.Size()*4, 8)
		if err != nil {
			return err
		}
		p, err := plan.NewAllGather(ctx, r, out, nil)
		if err != nil {
			return err
		}
		handle, err := p.Start(ctx)
		if err != nil {
			return err
		}
		// The kernel fill writes a region and marks a chunk: 4 rows of 8 bytes,
		// at this rank's place in the tensor.
		if err := r.Launch(kernels.Fill, kernels.Grid(1), handle, out, r.ID()*32, 8, 4, 8, 5, p.FirstChunk()); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if r.ID() == 0 {
			fmt.Println(p.Chunks(), "chunks are here; the plan is", p.State())
		}
		return p.Close(ctx)
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 3 chunks are here; the plan is DONE
}

// A Wait whose context ends says what is missing. Here rank 1 forgets its
// second chunk.
func ExamplePlan_Wait() {
	err := rank.Run(context.Background(), rank.Config{Ranks: 2, Platform: "host"}, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, r.Size()*2, 8)
		if err != nil {
			return err
		}
		rows := out.Rows(2*r.ID(), 2*r.ID()+2)
		chunks, err := schedule.Chunks(rows.Window(), 1, schedule.Options{})
		if err != nil {
			return err
		}
		p, err := plan.New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		handle, err := p.Start(ctx)
		if err != nil {
			return err
		}
		for row := range 2 - r.ID() {
			at := (2*r.ID() + row) * 8
			if err := r.Launch(kernels.Fill, kernels.Grid(1), handle, out, at, 8, 1, 8, 5, p.FirstChunk()+row); err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		err = p.Wait(short)
		if late := (*plan.TimeoutError)(nil); errors.As(err, &late) && r.ID() == 0 {
			last := late.Short[len(late.Short)-1]
			fmt.Printf("rank 0 has no chunk %d of rank %d\n", last.Chunk, last.Owner)
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		return p.Close(ctx) // sends the chunk as it stands
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// rank 0 has no chunk 3 of rank 1
}
