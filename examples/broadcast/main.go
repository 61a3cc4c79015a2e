// Command broadcast sends one rank's buffer to all others through a triggered
// plan. Only the root has a schedule; the other ranks pass an empty one and
// take part in everything else. The root's producer marks chunks ready as it
// goes, copy engines carry each to every peer meanwhile, and every rank's
// consumer checks chunks as they arrive. The data is different in every round,
// and every byte of every rank is checked in every round.
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
const seed = 0xb0a

const (
	name = "broadcast"
	what = "send one rank's rows to every rank while they are produced"
)

func main() {
	var b broadcast
	example.Main(name, what, b.flags, b.run)
}

type broadcast struct {
	root, rows, cols, programs int
	tile                       example.Pair
	node                       *rank.Node // nil is the process's
}

// result is what -json prints.
type result struct {
	Example        string  `json:"example"`
	Platform       string  `json:"platform"`
	Ranks          int     `json:"ranks"`
	Root           int     `json:"root"`
	Rounds         int     `json:"rounds"`
	Rows           int     `json:"rows"`
	Cols           int     `json:"cols"`
	Chunks         int     `json:"chunks"`
	CopiesPerRound int     `json:"copies_per_round"`
	BytesPerRound  int64   `json:"bytes_per_round"`
	SecondsPer     float64 `json:"seconds_per_round"`
	GBytesPer      float64 `json:"gbytes_per_second"`
	AllRight       bool    `json:"verified"`
}

func (r *result) Verified() bool { return r.AllRight }

func (r *result) Table() [][2]string {
	return [][2]string{
		{"chunks", fmt.Sprint(r.Chunks)},
		{"copies per round", fmt.Sprint(r.CopiesPerRound)},
		{"bytes sent per round", fmt.Sprint(r.BytesPerRound)},
		{"time per round", time.Duration(r.SecondsPer * 1e9).Round(time.Microsecond).String()},
		{"GB/s", fmt.Sprintf("%.2f", r.GBytesPer)},
		{"every byte verified", fmt.Sprint(r.AllRight)},
	}
}

func (b *broadcast) flags(fs *flag.FlagSet) {
	b.tile = example.Pair{A: 128, B: 128}
	example.Count(fs, &b.root, "root", 0, 0, rank.MaxRanks-1, "rank that sends")
	example.Count(fs, &b.rows, "rows", 1024, 1, 1<<24, "rows that the root produces")
	example.Count(fs, &b.cols, "cols", 1024, 1, 1<<24, "columns, of 2 bytes each")
	fs.Var(&b.tile, "tile", "`ROWSxCOLS` of the producer's tile")
	example.Count(fs, &b.programs, "programs", 8, 1, 1024, "programs of the producer, which complete a chunk with each of their common steps")
}

func (b *broadcast) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	if b.root >= f.Ranks {
		return nil, fmt.Errorf("-root is %d, and -ranks %d makes ranks 0 to %d", b.root, f.Ranks, f.Ranks-1)
	}
	res := &result{Example: name, Ranks: f.Ranks, Root: b.root, Rounds: f.Rounds, Rows: b.rows, Cols: b.cols}
	tilesM, tilesN := b.tiles()
	f.Say("rank %d of %d sends %dx%d elements in %dx%d tiles of %dx%d, %d programs, %d rounds",
		b.root, f.Ranks, b.rows, b.cols, tilesM, tilesN, b.tile.A, b.tile.B, b.programs, f.Rounds)

	bytes := int64(b.rows) * int64(b.cols) * elem
	meta := int64(f.Ranks) * int64(tilesM*tilesN) * 256 // gates, handles, stamps and the consumer's table
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: b.node, HeapBytes: f.HeapBytes(bytes + meta + 1<<20)}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return b.rank(ctx, f, r, res)
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
func (b *broadcast) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	out, err := r.Zeros(ctx, heap.BFloat16, b.rows, b.cols)
	if err != nil {
		return err
	}
	chunks, err := schedule.TileChunks(out.Window(), schedule.Tile{Rows: b.tile.A, Cols: b.tile.B}, b.programs, schedule.Options{
		LargestCopy: r.Device().Properties().LargestCopy,
		Order:       b.order,
	})
	if err != nil {
		return err
	}
	check, err := b.newChecker(ctx, r, out, chunks)
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
		res.BytesPerRound = chunks.Bytes() * int64(peers)
		f.Say("%s platform: %d chunks and %d copies per peer", res.Platform, len(chunks), chunks.Regions())
	}
	var spent time.Duration
	for round := 1; ; round++ {
		took, err := b.round(ctx, r, p, check)
		if err != nil {
			return err
		}
		spent += took
		if err := check.round(r, p.Round()); err != nil {
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

// round runs a round, and says how long it took until the last rank had all.
func (b *broadcast) round(ctx context.Context, r *rank.Rank, p *plan.Plan, check *checker) (time.Duration, error) {
	if err := r.Barrier(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	h, err := p.Start(ctx)
	if err != nil {
		return 0, err
	}
	if err := check.launch(h); err != nil {
		return 0, err
	}
	if r.ID() == b.root {
		if err := b.produce(r, h, check.out); err != nil {
			return 0, err
		}
	}
	if err := p.Wait(ctx); err != nil {
		return 0, err
	}
	err = r.Barrier(ctx)
	return time.Since(began), err
}

// produce launches the root's producer.
func (b *broadcast) produce(r *rank.Rank, h plan.Handle, out *heap.Tensor) error {
	w := out.Window()
	return r.Launch(kernels.Tiled, kernels.Grid(b.programs), h, out, w.Offset, b.rows, b.cols*elem, w.Pitch,
		b.tile.A, b.tile.B*elem, b.programs, group, seed)
}

func (b *broadcast) tiles() (m, n int) {
	return (b.rows + b.tile.A - 1) / b.tile.A, (b.cols + b.tile.B - 1) / b.tile.B
}

// order is the producer's own mapping from steps to tiles.
func (b *broadcast) order(step int) int {
	tilesM, tilesN := b.tiles()
	return kernels.TileOf(step, tilesM, tilesN, group)
}
