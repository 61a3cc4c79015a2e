package kernels

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip"
)

// Tiled is the kernel
//
//	tiled(handle, buffer, offset, rows, row_bytes, pitch, tile_rows, tile_bytes, steps_per_chunk, group, base)
//
// It is a persistent producer of a matrix: rows of row_bytes, pitch apart, at
// offset in the buffer. Program p of P takes steps p, p+P, and so on. A step
// writes one tile of tile_rows by tile_bytes, clipped at the edges, which
// TileOf picks with the group; then it marks the rank's chunk
// step / steps_per_chunk. The pattern's seed is SeedOf(base, rank, round).
var Tiled = builtin("tiled", tiled, "handle", "buffer", "offset", "rows", "row_bytes", "pitch", "tile_rows", "tile_bytes", "steps_per_chunk", "group", "base")

func tiled(t *hip.Thread) {
	v := NewView(t, t.Arg(0))
	rows, width := int64(t.Arg(3)), int64(t.Arg(4))
	w, err := openWindow(t, t.Arg(1), Region{int64(t.Arg(2)), width, rows, int64(t.Arg(5))})
	if err != nil {
		t.Fail(err)
	}
	size := func(i int, name string) int64 {
		n := t.Arg(i)
		if n < 1 || n > maxRegion {
			t.Fail(&ArgumentError{Kernel: "tiled", Argument: name, Why: fmt.Sprintf("it is %d, want 1 to 2^40", n)})
		}
		return int64(n)
	}
	tileRows, tileBytes := size(6, "tile_rows"), size(7, "tile_bytes")
	perChunk, group := int(size(8, "steps_per_chunk")), int(size(9, "group"))
	seed := SeedOf(t.Arg(10), v.Rank(), v.Round())

	tilesM, tilesN := int((rows+tileRows-1)/tileRows), int((width+tileBytes-1)/tileBytes)
	for step := t.Block; step < tilesM*tilesN; step += t.Blocks {
		tile := TileOf(step, tilesM, tilesN, group)
		row, col := int64(tile/tilesN)*tileRows, int64(tile%tilesN)*tileBytes
		w.sub(row, col, tileRows, tileBytes).fill(t.Index, t.Threads, seed)
		v.MarkReady(v.First() + step/perChunk)
	}
}
