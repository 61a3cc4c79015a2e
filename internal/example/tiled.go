package example

import (
	"flag"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// Elem is the size in bytes of the bfloat16 that programs move.
const Elem = 2

// group is how many tile rows a producer walks together.
const group = 2

// Tiled is what producers write: Rows × Cols elements, tile by tile.
type Tiled struct {
	Rows, Cols, Programs int
	Tile                 Pair
	Seed                 uint64 // sets a program's data apart from others'
}

// Flags adds the flags that shape it; who produces it.
func (t *Tiled) Flags(fs *flag.FlagSet, who string) {
	t.Tile = Pair{A: 128, B: 128}
	Count(fs, &t.Rows, "rows", 1024, 1, 1<<24, "rows that "+who+" produces")
	Count(fs, &t.Cols, "cols", 1024, 1, 1<<24, "columns, of 2 bytes each")
	fs.Var(&t.Tile, "tile", "`ROWSxCOLS` of a producer's tile")
	Count(fs, &t.Programs, "programs", 8, 1, 1024, "programs of a producer, which complete a chunk with each of their common steps")
}

// Tiles are how many tiles there are, down and across.
func (t *Tiled) Tiles() (m, n int) {
	return (t.Rows + t.Tile.A - 1) / t.Tile.A, (t.Cols + t.Tile.B - 1) / t.Tile.B
}

// HeapBytes is how much heap a buffer of so many producers needs on each of a
// world's ranks: its bytes, and gates, handles, stamps and the consumer's table.
func (t *Tiled) HeapBytes(producers, ranks int) int64 {
	m, n := t.Tiles()
	return int64(producers)*int64(t.Rows)*int64(t.Cols)*Elem + int64(ranks)*int64(m*n)*256 + 1<<20
}

// Chunks is the schedule of a producer that writes the window.
func (t *Tiled) Chunks(r *rank.Rank, w schedule.Window) (schedule.Schedule, error) {
	return schedule.TileChunks(w, schedule.Tile{Rows: t.Tile.A, Cols: t.Tile.B}, t.Programs, schedule.Options{
		LargestCopy: r.Device().Properties().LargestCopy,
		// The schedule follows the producer's own mapping from steps to tiles.
		Order: func(step int) int {
			m, n := t.Tiles()
			return kernels.TileOf(step, m, n, group)
		},
	})
}

// Produce launches the producer, which writes a window of out.
func (t *Tiled) Produce(r *rank.Rank, h plan.Handle, out *heap.Tensor, w schedule.Window) error {
	return r.Launch(kernels.Tiled, kernels.Grid(t.Programs), h, out, w.Offset, t.Rows, t.Cols*Elem, w.Pitch,
		t.Tile.A, t.Tile.B*Elem, t.Programs, group, t.Seed)
}
