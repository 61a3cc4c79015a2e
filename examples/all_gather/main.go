// Command all_gather gathers rows in place through a triggered plan: every
// rank's producer writes its own rows of one shared buffer tile by tile and
// marks chunks ready as it goes, copy engines carry each chunk to the peers
// while the rest is still being produced, and consumers check chunks as they
// arrive. The data is different in every round, and every byte of every rank
// is checked in every round.
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
	name = "all_gather"
	what = "gather every rank's rows on every rank while they are produced"
)

func main() {
	var g gather
	example.Main(name, what, g.flags, g.run)
}

type gather struct {
	tiled example.Tiled
	node  *rank.Node // nil is the process's
}

// result is what -json prints.
type result struct {
	Example        string `json:"example"`
	Platform       string `json:"platform"`
	Ranks          int    `json:"ranks"`
	Rounds         int    `json:"rounds"`
	Rows           int    `json:"rows"`
	Cols           int    `json:"cols"`
	ChunksPerRank  int    `json:"chunks_per_rank"`
	CopiesPerRound int    `json:"copies_per_round"`
	example.Figures
}

func (r *result) Table() [][2]string {
	return append([][2]string{
		{"chunks per rank", fmt.Sprint(r.ChunksPerRank)},
		{"copies per round", fmt.Sprint(r.CopiesPerRound)},
	}, r.Lines("sent")...)
}

func (g *gather) flags(fs *flag.FlagSet) {
	g.tiled.Seed = 0xa11
	g.tiled.Flags(fs, "each rank")
}

func (g *gather) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	t := &g.tiled
	res := &result{Example: name, Ranks: f.Ranks, Rounds: f.Rounds, Rows: t.Rows, Cols: t.Cols}
	tilesM, tilesN := t.Tiles()
	f.Say("%d ranks, each with %dx%d elements in %dx%d tiles of %dx%d, %d programs, %d rounds",
		f.Ranks, t.Rows, t.Cols, tilesM, tilesN, t.Tile.A, t.Tile.B, t.Programs, f.Rounds)
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: g.node, HeapBytes: f.HeapBytes(t.HeapBytes(f.Ranks, f.Ranks))}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return g.rank(ctx, f, r, res)
	})
	if !res.End(err) {
		return nil, err
	}
	return res, err
}

// rank is one rank's part; rank 0 fills in the result.
func (g *gather) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	out, err := r.Zeros(ctx, heap.BFloat16, r.Size()*g.tiled.Rows, g.tiled.Cols)
	if err != nil {
		return err
	}
	mine := out.Rows(r.ID()*g.tiled.Rows, (r.ID()+1)*g.tiled.Rows)
	chunks, err := g.tiled.Chunks(r, mine.Window())
	if err != nil {
		return err
	}
	check, err := g.tiled.NewChecker(ctx, r, out, everyone(r)...)
	if err != nil {
		return err
	}
	p, err := plan.NewAllGather(ctx, r, out, chunks)
	if err != nil {
		return err
	}
	if r.ID() == 0 {
		copies := chunks.Regions() * r.Size() * (r.Size() - 1)
		res.Platform, res.ChunksPerRank, res.CopiesPerRound = r.World().Platform(), len(chunks), copies
		res.Bytes = chunks.Bytes() * int64(r.Size()) * int64(r.Size()-1)
		f.Say("%s platform: %d chunks and %d copies per rank and peer", res.Platform, len(chunks), chunks.Regions())
	}
	var spent time.Duration
	for round := 1; ; round++ {
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		began := time.Now()
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if err := check.Launch(h); err != nil {
			return err
		}
		if err := g.tiled.Produce(r, h, out, mine.Window()); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		spent += took
		if err := check.Check(h.Round()); err != nil {
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

// everyone is every rank: the buffer has the rows of each.
func everyone(r *rank.Rank) (ranks []int) {
	for i := range r.Size() {
		ranks = append(ranks, i)
	}
	return ranks
}
