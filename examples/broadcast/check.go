package main

import (
	"context"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// checker checks what a rank gets: chunk by chunk as it arrives, by a consumer
// kernel, and the whole buffer once more after Wait.
type checker struct {
	b      *broadcast
	out    *heap.Tensor
	table  *heap.Tensor // which regions each chunk has, for the consumer
	errors *heap.Tensor // the consumer's error row
	stream *rank.Stream
	bytes  []byte
}

// newChecker is collective. chunks are the root's, which every rank can build.
func (b *broadcast) newChecker(ctx context.Context, r *rank.Rank, out *heap.Tensor, chunks schedule.Schedule) (*checker, error) {
	c := &checker{b: b, out: out, bytes: make([]byte, out.Size())}
	var regions [][]kernels.Region
	for _, ch := range chunks {
		var list []kernels.Region
		for _, reg := range ch.Regions {
			list = append(list, kernels.Region(reg))
		}
		regions = append(regions, list)
	}
	words := kernels.ConsumerTable(regions)
	var err error
	if c.table, err = r.Zeros(ctx, heap.Uint64, len(words)); err != nil {
		return nil, err
	}
	if err := heap.Write(c.table, words); err != nil {
		return nil, err
	}
	if c.errors, err = r.Zeros(ctx, heap.Uint64, kernels.ErrorRow/8); err != nil {
		return nil, err
	}
	c.stream, err = r.NewStream()
	return c, err
}

// launch starts the consumer, which waits for the root's chunks.
func (c *checker) launch(h plan.Handle) error {
	return c.stream.Launch(kernels.Consumer, kernels.Waits(kernels.Grid(c.b.programs)), h, c.out, c.table, seed, c.errors)
}

// wrongError says that bytes are not what the root wrote.
type wrongError struct {
	rank  int
	round uint64
	bytes uint64
	where string
}

func (e *wrongError) Error() string {
	return fmt.Sprintf("round %d: rank %d has %d wrong bytes in %s", e.round, e.rank, e.bytes, e.where)
}

// round checks what the round left. The error is a *wrongError if there are
// wrong bytes.
func (c *checker) round(r *rank.Rank, round uint64) error {
	found := make([]uint64, kernels.ErrorRow/8)
	if err := heap.Read(c.errors, found); err != nil {
		return err
	}
	if wrong := found[kernels.ErrorBytes/8]; wrong > 0 {
		return &wrongError{r.ID(), round, wrong, fmt.Sprintf("chunk %d, by the consumer", int64(found[kernels.ErrorChunk/8])-1)}
	}
	if err := c.out.Read(c.bytes); err != nil {
		return err
	}
	if wrong := kernels.CheckPattern(c.bytes, kernels.SeedOf(seed, c.b.root, round), 0); wrong > 0 {
		return &wrongError{r.ID(), round, uint64(wrong), "its buffer"}
	}
	return nil
}
