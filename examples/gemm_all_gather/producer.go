package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/kernels/python"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// producer says whose kernel computes the product.
type producer string

// products are Triton's and Gluon's kernels by the producer they are for.
var products = map[producer]string{"builtin": "", "triton": "gemm", "gluon": "gluon_gemm"}

func (p *producer) String() string { return string(*p) }

// Set implements flag.Value.
func (p *producer) Set(s string) error {
	if _, known := products[producer(s)]; !known {
		return errors.New("it is builtin, triton or gluon")
	}
	*p = producer(s)
	return nil
}

// kernelSet is the kernels of a rank: on GPUs the consumer is Triton's, whoever
// the producer is.
type kernelSet struct {
	product  *kernels.TritonKernel // nil is the built-in one
	consumer *kernels.TritonKernel // nil on the host
	scratch  *heap.Tensor          // of the product
}

// kernels loads what the rank's device needs.
func (g *gather) kernels(r *rank.Rank) (*kernelSet, error) {
	product, modules := products[g.producer], r.Device().Properties().Modules
	switch {
	case !modules && product != "":
		return nil, fmt.Errorf("-producer %s needs a GPU: kernels on the host are Go functions; take builtin", g.producer)
	case !modules:
		return &kernelSet{}, nil
	}
	load := func() (*kernels.Triton, error) {
		if g.triton != "" {
			return kernels.LoadTriton(r.Device(), g.triton)
		}
		return kernels.LoadTritonFS(r.Device(), python.Built())
	}
	all, err := load()
	if err != nil {
		return nil, err
	}
	k := &kernelSet{}
	if k.consumer, err = all.Kernel("consume"); err != nil || product == "" {
		return k, err
	}
	k.product, err = all.Kernel(product)
	return k, err
}

// allocate is collective.
func (k *kernelSet) allocate(ctx context.Context, r *rank.Rank, programs int) (err error) {
	if k.product == nil || k.product.ScratchBytes(programs) == 0 {
		return nil
	}
	k.scratch, err = r.Zeros(ctx, heap.Uint8, int(k.product.ScratchBytes(programs)))
	return err
}

func (k *kernelSet) tile() schedule.Tile {
	if k.product == nil {
		return schedule.Tile{Rows: productTile, Cols: productTile}
	}
	c := k.product.Constants()
	return schedule.Tile{Rows: c["BLOCK_M"], Cols: c["BLOCK_N"]}
}

// order is the producer's own mapping from steps to tiles.
func (k *kernelSet) order(step, tilesM, tilesN int) int {
	if k.product == nil {
		return kernels.TileOf(step, tilesM, tilesN, productGroup)
	}
	return k.product.Order().Tile(step, tilesM, tilesN)
}

// arguments are those of Triton's product.
func (k *kernelSet) arguments(handle any, mine *heap.Tensor, in *inputs, g *gather) (hip.Grid, []any, error) {
	return k.product.Launch(g.programs, k.scratch, handle, mine, in.a, in.b, g.rows, g.cols, g.depth, g.steps)
}

// check says whether the producer takes the shapes, before a plan is made.
func (k *kernelSet) check(mine *heap.Tensor, in *inputs, g *gather) error {
	if k.product == nil {
		return nil
	}
	_, _, err := k.arguments(uint64(0), mine, in, g)
	return err
}

// launch starts the producer of a round.
func (k *kernelSet) launch(r *rank.Rank, h plan.Handle, out, mine *heap.Tensor, in *inputs, g *gather) error {
	if k.product != nil {
		grid, args, err := k.arguments(h, mine, in, g)
		if err != nil {
			return err
		}
		return r.Launch(k.product.Kernel, grid, args...)
	}
	grid := kernels.Grid(g.programs)
	if k.consumer != nil { // on a GPU
		grid.Threads = productThreads
	}
	w := mine.Window()
	return r.Launch(matmul, grid, h, out, w.Offset, w.Pitch, in.a, in.b, g.rows, g.cols, g.depth, g.steps, productGroup)
}

// consumer uses a rank's chunks as they arrive.
type consumer struct {
	g      *gather
	k      *kernelSet
	out    *heap.Tensor
	result *heap.Tensor // a word per chunk
	stream *rank.Stream
}

// consumers is how many programs a consumer has.
const consumers = 4

// newConsumer is collective.
func (g *gather) newConsumer(ctx context.Context, r *rank.Rank, k *kernelSet, out *heap.Tensor, chunks int) (*consumer, error) {
	c := &consumer{g: g, k: k, out: out}
	var err error
	if c.result, err = r.Zeros(ctx, heap.Uint64, chunks); err != nil {
		return nil, err
	}
	c.stream, err = r.NewStream()
	return c, err
}

func (c *consumer) launch(h plan.Handle) error {
	tile := c.k.tile()
	args := []any{h, c.out, c.result, c.g.rows, c.g.cols, tile.Rows, tile.Cols, c.g.steps}
	kernel, grid := consume, hip.Grid{Blocks: consumers}
	if c.k.consumer != nil {
		var err error
		if grid, args, err = c.k.consumer.Launch(consumers, nil, args...); err != nil {
			return err
		}
		kernel = c.k.consumer.Kernel
	}
	return c.stream.Launch(kernel, kernels.Waits(grid), args...)
}

// sums are what the consumer left of a round that is done.
func (c *consumer) sums() ([]uint64, error) {
	sums := make([]uint64, c.result.Len())
	return sums, heap.Read(c.result, sums)
}
