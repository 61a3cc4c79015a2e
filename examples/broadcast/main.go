// Command broadcast sends one rank's buffer to all others through a triggered
// plan. Only the root has a schedule; the other ranks pass an empty one and
// take part in everything else. The root's producer marks chunks ready as it
// goes, copy engines carry each to every peer meanwhile, and every rank's
// consumer checks chunks as they arrive. The data is different in every round,
// and every byte of every rank is checked in every round.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

const (
	name = "broadcast"
	what = "send one rank's rows to every rank while they are produced"
)

func main() {
	var b broadcast
	example.Main(name, what, b.flags, b.run)
}

type broadcast struct {
	root  int
	tiled example.Tiled
	node  *rank.Node // nil is the process's
}

// result is what -json prints.
type result struct {
	Example        string `json:"example"`
	Platform       string `json:"platform"`
	Ranks          int    `json:"ranks"`
	Root           int    `json:"root"`
	Rounds         int    `json:"rounds"`
	Rows           int    `json:"rows"`
	Cols           int    `json:"cols"`
	Chunks         int    `json:"chunks"`
	CopiesPerRound int    `json:"copies_per_round"`
	example.Figures
}

func (r *result) Table() [][2]string {
	return append([][2]string{
		{"chunks", fmt.Sprint(r.Chunks)},
		{"copies per round", fmt.Sprint(r.CopiesPerRound)},
	}, r.Lines("sent")...)
}

func (b *broadcast) flags(fs *flag.FlagSet) {
	b.tiled.Seed = 0xb0a
	b.tiled.Flags(fs, "the root")
	example.Count(fs, &b.root, "root", 0, 0, rank.MaxRanks-1, "rank that sends")
}

func (b *broadcast) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	if b.root >= f.Ranks {
		return nil, fmt.Errorf("-root is %d, and -ranks %d makes ranks 0 to %d", b.root, f.Ranks, f.Ranks-1)
	}
	t := &b.tiled
	res := &result{Example: name, Ranks: f.Ranks, Root: b.root, Rounds: f.Rounds, Rows: t.Rows, Cols: t.Cols}
	tilesM, tilesN := t.Tiles()
	f.Say("rank %d of %d sends %dx%d elements in %dx%d tiles of %dx%d, %d programs, %d rounds",
		b.root, f.Ranks, t.Rows, t.Cols, tilesM, tilesN, t.Tile.A, t.Tile.B, t.Programs, f.Rounds)
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: b.node, HeapBytes: f.HeapBytes(t.HeapBytes(1, f.Ranks))}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return b.rank(ctx, f, r, res)
	})
	if !res.End(err) {
		return nil, err
	}
	return res, err
}

// rank is one rank's part; rank 0 fills in the result.
func (b *broadcast) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	out, err := r.Zeros(ctx, heap.BFloat16, b.tiled.Rows, b.tiled.Cols)
	if err != nil {
		return err
	}
	chunks, err := b.tiled.Chunks(r, out.Window())
	if err != nil {
		return err
	}
	check, err := b.tiled.NewChecker(ctx, r, out, b.root)
	if err != nil {
		return err
	}
	mine := chunks
	if r.ID() != b.root {
		mine = nil // it sends nothing
	}
	p, err := plan.New(ctx, r, out, mine)
	if err != nil {
		return err
	}
	if r.ID() == 0 {
		peers := r.Size() - 1
		res.Platform, res.Chunks, res.CopiesPerRound = r.World().Platform(), len(chunks), chunks.Regions()*peers
		res.Bytes = chunks.Bytes() * int64(peers)
		f.Say("%s platform: %d chunks and %d copies per peer", res.Platform, len(chunks), chunks.Regions())
	}
	var spent time.Duration
	for round := 1; ; round++ {
		took, err := b.round(ctx, r, p, out, check)
		if err != nil {
			return err
		}
		spent += took
		if err := check.Check(p.Round()); err != nil {
			return err
		}
		if r.ID() == 0 {
			f.Detail("round %d: %v", round, took.Round(time.Microsecond))
			f.Progress("round", round, f.Rounds)
		}
		if round == f.Rounds {
			break
		}
		if err := p.NextRound(ctx); err != nil {
			return err
		}
	}
	if r.ID() == 0 {
		res.Spent(spent, f.Rounds)
	}
	return p.Close(ctx)
}

// round runs a round, and says how long it took until the last rank had all.
func (b *broadcast) round(ctx context.Context, r *rank.Rank, p *plan.Plan, out *heap.Tensor, check *example.Checker) (time.Duration, error) {
	if err := r.Barrier(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	h, err := p.Start(ctx)
	if err != nil {
		return 0, err
	}
	if err := check.Launch(h); err != nil {
		return 0, err
	}
	if r.ID() == b.root {
		if err := b.tiled.Produce(r, h, out, out.Window()); err != nil {
			return 0, err
		}
	}
	if err := p.Wait(ctx); err != nil {
		return 0, err
	}
	err = r.Barrier(ctx)
	return time.Since(began), err
}
