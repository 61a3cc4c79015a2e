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

// checker checks the data of a rank: chunk by chunk as it arrives, by a
// consumer kernel, and the whole buffer once more after Wait.
type checker struct {
	g      *gather
	rank   *rank.Rank
	out    *heap.Tensor
	table  *heap.Tensor // which regions each chunk has, for the consumer
	errors *heap.Tensor // the consumer's error row
	stream *rank.Stream
	bytes  []byte
}

func (g *gather) newChecker(ctx context.Context, r *rank.Rank, out *heap.Tensor) (*checker, error) {
	c := &checker{g: g, rank: r, out: out, bytes: make([]byte, out.Size())}
	var regions [][]kernels.Region
	for peer := range r.Size() {
		chunks, err := schedule.TileChunks(out.Rows(peer*g.rows, (peer+1)*g.rows).Window(),
			schedule.Tile{Rows: g.tile.A, Cols: g.tile.B}, g.programs, schedule.Options{Order: g.order})
		if err != nil {
			return nil, err
		}
		for _, ch := range chunks {
			var list []kernels.Region
			for _, reg := range ch.Regions {
				list = append(list, kernels.Region(reg))
			}
			regions = append(regions, list)
		}
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

// launch starts the consumer beside the producer.
func (c *checker) launch(h plan.Handle) error {
	return c.stream.Launch(kernels.Consumer, kernels.Waits(kernels.Grid(c.g.programs)), h, c.out, c.table, seed, c.errors)
}

// wrongError says that bytes are not what their rank wrote.
type wrongError struct {
	round uint64
	bytes uint64
	where string
}

func (e *wrongError) Error() string {
	return fmt.Sprintf("round %d: %d wrong bytes in %s", e.round, e.bytes, e.where)
}

// round checks what the round left: the consumer's findings, and every byte.
// The error is a *wrongError if there are wrong ones.
func (c *checker) round(h plan.Handle) error {
	found := make([]uint64, kernels.ErrorRow/8)
	if err := heap.Read(c.errors, found); err != nil {
		return err
	}
	if wrong := found[kernels.ErrorBytes/8]; wrong > 0 {
		return &wrongError{h.Round(), wrong, fmt.Sprintf("chunk %d, by the consumer", int64(found[kernels.ErrorChunk/8])-1)}
	}
	if err := c.out.Read(c.bytes); err != nil {
		return err
	}
	per := len(c.bytes) / c.rank.Size()
	for peer := range c.rank.Size() {
		at := peer * per
		if wrong := kernels.CheckPattern(c.bytes[at:at+per], kernels.SeedOf(seed, peer, h.Round()), uint64(at)); wrong > 0 {
			return &wrongError{h.Round(), uint64(wrong), fmt.Sprintf("rank %d's rows", peer)}
		}
	}
	return nil
}
