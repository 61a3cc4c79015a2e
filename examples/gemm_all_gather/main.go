// Command gemm_all_gather multiplies matrices and gathers the product while it
// is computed: every rank's producer, in Go, C++, Triton or Gluon, writes its
// own rows of one shared buffer tile by tile and marks chunks ready as it goes,
// copy engines carry each chunk to the peers, and a consumer there uses chunks
// as they arrive. The inputs are different in every round; a sample of the
// product is compared with one in float64, and every gathered byte with the
// byte that its rank wrote.
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
	"github.com/triggeredplans/sluice/schedule"
)

const (
	name = "gemm_all_gather"
	what = "gather every rank's part of a matrix product on every rank while it is computed"
)

func main() {
	var g gather
	example.Main(name, what, g.flags, g.run)
}

type gather struct {
	rows, cols, depth, programs, steps int
	producer                           producer
	triton                             string
	node                               *rank.Node // nil is the process's
	seen                               seen
}

// result is what -json prints.
type result struct {
	Example       string  `json:"example"`
	Platform      string  `json:"platform"`
	Producer      string  `json:"producer"`
	Ranks         int     `json:"ranks"`
	Rounds        int     `json:"rounds"`
	Rows          int     `json:"rows"`
	Cols          int     `json:"cols"`
	Depth         int     `json:"depth"`
	TileRows      int     `json:"tile_rows"`
	TileCols      int     `json:"tile_cols"`
	ChunksPerRank int     `json:"chunks_per_rank"`
	Sampled       int     `json:"elements_compared_with_float64"`
	WorstError    float64 `json:"worst_error"` // of those, as a part of what rounding may make of them
	example.Figures
}

func (r *result) Table() [][2]string {
	return append([][2]string{
		{"producer", fmt.Sprintf("%s, tiles of %dx%d", r.Producer, r.TileRows, r.TileCols)},
		{"chunks per rank", fmt.Sprint(r.ChunksPerRank)},
		{"compared with float64", fmt.Sprintf("%d elements, the worst at %.2f of what rounding allows", r.Sampled, r.WorstError)},
	}, r.Lines("sent")...)
}

func (g *gather) flags(fs *flag.FlagSet) {
	example.Count(fs, &g.rows, "rows", 512, 1, 1<<24, "rows that each rank produces")
	example.Count(fs, &g.cols, "cols", 512, 1, 1<<24, "columns of the product")
	example.Count(fs, &g.depth, "depth", 64, 1, 1<<24, "columns of the first matrix, rows of the second")
	example.Count(fs, &g.programs, "programs", 4, 1, 1024, "programs of a producer")
	example.Count(fs, &g.steps, "tiles", 0, 0, 1<<24, "tiles of the producer that make a chunk; 0 means as many as there are programs")
	g.producer = "builtin"
	fs.Var(&g.producer, "producer", "`whose` kernel computes the product: builtin, triton or gluon; on the host builtin only, a Go function")
	fs.StringVar(&g.triton, "triton", "", "`folder` with kernels that python/build.py made; \"\" means those that come with the program")
}

func (g *gather) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	if g.steps == 0 {
		g.steps = g.programs
	}
	res := &result{Example: name, Producer: string(g.producer), Ranks: f.Ranks, Rounds: f.Rounds, Rows: g.rows, Cols: g.cols, Depth: g.depth}
	f.Say("%d ranks, each with %dx%d elements of depth %d, %d programs, %d rounds", f.Ranks, g.rows, g.cols, g.depth, g.programs, f.Rounds)
	g.seen.start(f.Ranks)
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: g.node, HeapBytes: f.HeapBytes(g.heapBytes(f.Ranks))}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return g.rank(ctx, f, r, res)
	})
	if !res.End(err) {
		return nil, err
	}
	return res, err
}

// heapBytes is room for the three matrices, the gates and handles, and what
// Triton's kernels need besides.
func (g *gather) heapBytes(ranks int) int64 {
	matrices := int64(g.rows)*int64(g.depth) + int64(g.depth)*int64(g.cols) + int64(ranks)*int64(g.rows)*int64(g.cols)
	chunks := int64(ranks) * (int64(g.rows)*int64(g.cols)/(smallestTile*int64(g.steps)) + 2)
	return elem*matrices + 512*chunks + 4096*int64(g.programs) + 2<<20
}

// rank is one rank's part; rank 0 fills in the result.
func (g *gather) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	// Code is loaded before the device has work.
	k, err := g.kernels(r)
	if err != nil {
		return err
	}
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	out, err := r.Zeros(ctx, heap.BFloat16, r.Size()*g.rows, g.cols)
	if err != nil {
		return err
	}
	in, err := g.newInputs(ctx, r)
	if err != nil {
		return err
	}
	if err := k.allocate(ctx, r, g.programs); err != nil {
		return err
	}
	mine := out.Rows(r.ID()*g.rows, (r.ID()+1)*g.rows)
	if err := k.check(mine, in, g); err != nil {
		return err
	}
	tile := k.tile()
	chunks, err := schedule.TileChunks(mine.Window(), tile, g.steps, schedule.Options{
		LargestCopy: r.Device().Properties().LargestCopy,
		Order: func(step int) int {
			return k.order(step, (g.rows+tile.Rows-1)/tile.Rows, (g.cols+tile.Cols-1)/tile.Cols)
		},
	})
	if err != nil {
		return err
	}
	use, err := g.newConsumer(ctx, r, k, out, len(chunks)*r.Size())
	if err != nil {
		return err
	}
	p, err := plan.NewAllGather(ctx, r, out, chunks)
	if err != nil {
		return err
	}
	if r.ID() == 0 {
		res.Platform, res.ChunksPerRank = r.World().Platform(), len(chunks)
		res.TileRows, res.TileCols = tile.Rows, tile.Cols
		res.Bytes = chunks.Bytes() * int64(r.Size()) * int64(r.Size()-1)
		f.Say("%s platform: %d chunks of %d tiles", res.Platform, len(chunks), g.steps)
	}
	var spent time.Duration
	for round := 1; ; round++ {
		if err := in.write(round); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		began := time.Now()
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if err := use.launch(h); err != nil {
			return err
		}
		if err := k.launch(r, h, out, mine, in, g); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		spent += time.Since(began)
		if err := g.check(ctx, r, out, in, use, chunks, h.Round()); err != nil {
			return err
		}
		if r.ID() == 0 {
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
		res.Sampled, res.WorstError = g.seen.result()
	}
	return p.Close(ctx)
}
