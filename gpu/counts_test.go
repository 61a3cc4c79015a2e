package gpu

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// Tools that check memory refuse additions at system scope in pinned memory of
// the host, which this link does not make atomic with the CPU's. In the rounds
// of these tests all counters of kernels lie in the device's memory, and they
// are what such a tool runs.

func TestADeviceSendsToTheHostInRoundsOfOneProducer(t *testing.T) {
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		s, err := newSender(ctx, r, 8, 3000, 15)
		if err != nil {
			return err
		}
		var mine schedule.Schedule
		if r.ID() == 0 {
			mine = s.chunks
		}
		p, err := plan.New(ctx, r, s.out, mine)
		if err != nil {
			return err
		}
		for {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				err = s.produce(p, h)
			}
			if err := errors.Join(err, p.Wait(ctx), s.checkOf(0, h.Round())); err != nil {
				return err
			}
			if h.Round() == 20 {
				return p.Close(ctx)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
	})
}

func TestProducersAndConsumersOfTwoHeapsOnOneDevice(t *testing.T) {
	const rows, width = 64, 256
	cfg := config(t, 2)
	cfg.Placement = []rank.Placement{{Memory: hip.DeviceMemory}, {Memory: hip.DeviceMemory}}
	cfg.AllowComputeCopies = true
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		g, err := newGather(ctx, r, rows, width)
		if err != nil {
			return err
		}
		p, err := plan.New(ctx, r, g.out, g.parts[r.ID()])
		if err != nil {
			return err
		}
		for {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(g.launch(h, 4), p.Wait(ctx), g.check(h.Round())); err != nil {
				return err
			}
			if h.Round() == 5 {
				return p.Close(ctx)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
	})
}

// gather is a rank of two that produces tiles, and checks those of both in a
// kernel that waits for each chunk.
type gather struct {
	*rank.Rank
	out, table, found *heap.Tensor
	parts             []schedule.Schedule
	chunks            int // of both
	side              *rank.Stream
	rows, width       int
}

// newGather is collective.
func newGather(ctx context.Context, r *rank.Rank, rows, width int) (*gather, error) {
	g := &gather{Rank: r, rows: rows, width: width}
	var err error
	if g.out, err = r.Zeros(ctx, heap.Uint8, 2*rows, width); err != nil {
		return nil, err
	}
	var regions [][]kernels.Region
	for of := range 2 {
		part, err := schedule.TileChunks(g.out.Rows(of*rows, (of+1)*rows).Window(), schedule.Tile{Rows: 16, Cols: 128}, 8, schedule.Options{})
		if err != nil {
			return nil, err
		}
		g.parts = append(g.parts, part)
		for _, c := range part {
			var list []kernels.Region
			for _, reg := range c.Regions {
				list = append(list, kernels.Region(reg))
			}
			regions = append(regions, list)
		}
	}
	g.chunks = len(regions)
	words := kernels.ConsumerTable(regions)
	if g.table, err = r.Zeros(ctx, heap.Uint64, len(words)); err != nil {
		return nil, err
	}
	if g.found, err = r.Zeros(ctx, heap.Uint64, 8); err != nil {
		return nil, err
	}
	if g.side, err = r.NewStream(); err != nil {
		return nil, err
	}
	return g, heap.Write(g.table, words)
}

// launch starts the consumer, and a producer of so many CTAs.
func (g *gather) launch(h plan.Handle, ctas int) error {
	w := g.out.Rows(g.ID()*g.rows, (g.ID()+1)*g.rows).Window()
	return errors.Join(
		g.side.Launch(kernels.Consumer, kernels.Waits(kernels.Grid(4)), h, g.out, g.table, 9, g.found),
		g.Launch(kernels.Tiled, kernels.Grid(ctas), h, g.out, w.Offset, g.rows, g.width, w.Pitch, 16, 128, 8, 1, 9))
}

// check reads what consumers have found so far.
func (g *gather) check(round uint64) error {
	var row [8]uint64
	if err := heap.Read(g.found, row[:]); err != nil {
		return err
	}
	if row[0] != 0 || row[2] != round*uint64(g.chunks) {
		return fmt.Errorf("round %d: %d wrong bytes in %d checks", round, row[0], row[2])
	}
	return nil
}
