package main

import (
	"encoding/binary"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// The tiles of the built-in product, and how many rows of them its order walks
// together. Its kernel on GPUs has CTAs of productThreads.
const (
	productTile    = 128
	productGroup   = 8
	productThreads = 128
)

// smallestTile is the elements of the smallest tile that a producer has.
const smallestTile = productTile * productTile

// matmul is the built-in product; on the host it is this Go function.
var matmul = &kernels.Kernel{
	Name: "matmul",
	Args: []string{"handle", "buffer", "offset", "pitch", "a", "b", "m", "n", "k", "steps_per_chunk", "group"},
	Go: func(t *hip.Thread) {
		view := kernels.NewView(t, t.Arg(0))
		m, n, k := int(t.Arg(6)), int(t.Arg(7)), int(t.Arg(8))
		steps, group := int(t.Arg(9)), int(t.Arg(10))
		out, pitch := t.Arg(1)+t.Arg(2), t.Arg(3)
		b := numbers(t.Bytes(t.Arg(5), int64(k*n*elem)))
		tilesM, tilesN := (m+productTile-1)/productTile, (n+productTile-1)/productTile
		for step := t.Block; step < tilesM*tilesN; step += t.Blocks {
			tile := kernels.TileOf(step, tilesM, tilesN, group)
			top, left := tile/tilesN*productTile, tile%tilesN*productTile
			right := min(left+productTile, n)
			sums := make([]float32, right-left)
			for row := top + t.Index; row < min(top+productTile, m); row += t.Threads {
				clear(sums)
				for i, x := range numbers(t.Bytes(t.Arg(4)+uint64(row*k*elem), int64(k*elem))) {
					for j, y := range b[i*n+left : i*n+right] {
						sums[j] += x * y
					}
				}
				line := t.Bytes(out+uint64(row)*pitch+uint64(left*elem), int64(len(sums)*elem))
				for j, sum := range sums {
					binary.LittleEndian.PutUint16(line[elem*j:], narrow(sum))
				}
			}
			view.MarkReady(view.First() + step/steps)
		}
	},
}

// numbers are bfloat16 elements as they are computed with.
func numbers(of []byte) []float32 {
	all := make([]float32, len(of)/elem)
	for i := range all {
		all[i] = widen(binary.LittleEndian.Uint16(of[elem*i:]))
	}
	return all
}

// consume waits for the chunks of all ranks, one after the other, and leaves
// the sum of each one's elements, taken as unsigned integers, in a word of sums.
var consume = &kernels.Kernel{
	Name: "consume",
	Args: []string{"handle", "out", "sums", "m", "n", "tile_m", "tile_n", "steps_per_chunk"},
	Go: func(t *hip.Thread) {
		view := kernels.NewView(t, t.Arg(0))
		m, n, steps := int(t.Arg(3)), int(t.Arg(4)), int(t.Arg(7))
		tileM, tileN := int(t.Arg(5)), int(t.Arg(6))
		tilesM, tilesN := (m+tileM-1)/tileM, (n+tileN-1)/tileN
		each := view.Chunks() / view.World()
		for chunk := t.Block; chunk < view.Chunks(); chunk += t.Blocks {
			view.Wait(chunk)
			if t.Index != 0 {
				continue
			}
			first := chunk % each * steps
			sum := uint64(0)
			for step := first; step < min(first+steps, tilesM*tilesN); step++ {
				tile := kernels.TileOf(step, tilesM, tilesN, productGroup)
				top, left := tile/tilesN*tileM, tile%tilesN*tileN
				for row := chunk/each*m + top; row < chunk/each*m+min(top+tileM, m); row++ {
					line := t.Bytes(t.Arg(1)+uint64((row*n+left)*elem), int64((min(left+tileN, n)-left)*elem))
					for i := 0; i < len(line); i += elem {
						sum += uint64(binary.LittleEndian.Uint16(line[i:]))
					}
				}
			}
			binary.LittleEndian.PutUint64(t.Bytes(t.Arg(2)+uint64(8*chunk), 8), sum)
		}
	},
}
