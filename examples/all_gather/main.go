// Command all_gather gathers rows in place through a triggered plan: every
// rank's producer writes its own rows of one shared buffer tile by tile and
// marks chunks ready as it goes, copy engines carry each chunk to the peers
// while the rest is still being produced, and consumers check chunks as they
// arrive. The data is different in every round, and every byte of every rank
// is checked in every round.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// elem is the size of a bfloat16.
const elem = 2

// group is how many tile rows the producer walks together.
const group = 2

// seed sets this program's data apart from others'.
const seed = 0xa11

const (
	name = "all_gather"
	what = "gather every rank's rows on every rank while they are produced"
)

func main() {
	var g gather
	example.Main(name, what, g.flags, g.run)
}

type gather struct {
	rows, cols, programs int
	tile                 example.Pair
	node                 *rank.Node // nil is the process's
}

// result is what -json prints.
type result struct {
	Example        string  `json:"example"`
	Platform       string  `json:"platform"`
	Ranks          int     `json:"ranks"`
	Rounds         int     `json:"rounds"`
	Rows           int     `json:"rows"`
	Cols           int     `json:"cols"`
	ChunksPerRank  int     `json:"chunks_per_rank"`
	CopiesPerRound int     `json:"copies_per_round"`
	BytesPerRound  int64   `json:"bytes_per_round"`
	SecondsPer     float64 `json:"seconds_per_round"`
	GBytesPer      float64 `json:"gbytes_per_second"`
	AllRight       bool    `json:"verified"`
}

func (r *result) Verified() bool { return r.AllRight }

func (r *result) Table() [][2]string {
	return [][2]string{
		{"chunks per rank", fmt.Sprint(r.ChunksPerRank)},
		{"copies per round", fmt.Sprint(r.CopiesPerRound)},
		{"bytes sent per round", fmt.Sprint(r.BytesPerRound)},
		{"time per round", time.Duration(r.SecondsPer * 1e9).Round(time.Microsecond).String()},
		{"GB/s", fmt.Sprintf("%.2f", r.GBytesPer)},
		{"every byte verified", fmt.Sprint(r.AllRight)},
	}
}

func (g *gather) flags(fs *flag.FlagSet) {
	g.tile = example.Pair{A: 128, B: 128}
	example.Count(fs, &g.rows, "rows", 1024, 1, 1<<24, "rows that each rank produces")
	example.Count(fs, &g.cols, "cols", 1024, 1, 1<<24, "columns, of 2 bytes each")
	fs.Var(&g.tile, "tile", "`ROWSxCOLS` of a producer's tile")
	example.Count(fs, &g.programs, "programs", 8, 1, 1024, "programs of a producer, which complete a chunk with each of their common steps")
}

func (g *gather) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	res := &result{Example: name, Ranks: f.Ranks, Rounds: f.Rounds, Rows: g.rows, Cols: g.cols}
	tilesM, tilesN := (g.rows+g.tile.A-1)/g.tile.A, (g.cols+g.tile.B-1)/g.tile.B
	f.Say("%d ranks, each with %dx%d elements in %dx%d tiles of %dx%d, %d programs, %d rounds",
		f.Ranks, g.rows, g.cols, tilesM, tilesN, g.tile.A, g.tile.B, g.programs, f.Rounds)

	bytes := int64(f.Ranks) * int64(g.rows) * int64(g.cols) * elem
	meta := int64(f.Ranks) * int64(tilesM*tilesN) * 256 // gates, handles and the consumer's table
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: g.node, HeapBytes: f.HeapBytes(bytes + meta + 1<<20)}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return g.rank(ctx, f, r, res)
	})
	if wrong := (*wrongError)(nil); errors.As(err, &wrong) {
		return res, err
	} else if err != nil {
		return nil, err
	}
	res.AllRight = true
	res.GBytesPer = float64(res.BytesPerRound) / res.SecondsPer / 1e9
	return res, nil
}

// rank is one rank's part; rank 0 fills in the result.
func (g *gather) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	out, err := r.Zeros(ctx, heap.BFloat16, r.Size()*g.rows, g.cols)
	if err != nil {
		return err
	}
	mine := out.Rows(r.ID()*g.rows, (r.ID()+1)*g.rows)
	chunks, err := schedule.TileChunks(mine.Window(), schedule.Tile{Rows: g.tile.A, Cols: g.tile.B}, g.programs, schedule.Options{
		LargestCopy: r.Device().Properties().LargestCopy,
		Order:       g.order,
	})
	if err != nil {
		return err
	}
	check, err := g.newChecker(ctx, r, out)
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
		res.BytesPerRound = chunks.Bytes() * int64(r.Size()) * int64(r.Size()-1)
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
		if err := check.launch(h); err != nil {
			return err
		}
		w := mine.Window()
		err = r.Launch(kernels.Tiled, kernels.Grid(g.programs), h, out, w.Offset, g.rows, g.cols*elem, w.Pitch,
			g.tile.A, g.tile.B*elem, g.programs, group, seed)
		if err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		spent += took
		if err := check.round(h); err != nil {
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
		res.SecondsPer = spent.Seconds() / float64(f.Rounds)
	}
	return p.Close(ctx)
}

// order is the producer's own mapping from steps to tiles.
func (g *gather) order(step int) int {
	tilesM, tilesN := (g.rows+g.tile.A-1)/g.tile.A, (g.cols+g.tile.B-1)/g.tile.B
	return kernels.TileOf(step, tilesM, tilesN, group)
}
