package example

import (
	"context"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// Checker checks what a rank has: chunk by chunk as it arrives, by a consumer
// kernel, and the whole buffer once more when the round has ended.
type Checker struct {
	t         *Tiled
	rank      *rank.Rank
	out       *heap.Tensor
	producers []int
	errors    *heap.Tensor // the consumer's error row
	table     *heap.Tensor // which regions each chunk has, for the consumer
	stream    *rank.Stream
	bytes     []byte
}

// NewChecker is collective. The buffer has the rows of the producers, which are
// ranks, one after the other.
func (t *Tiled) NewChecker(ctx context.Context, r *rank.Rank, out *heap.Tensor, producers ...int) (*Checker, error) {
	c := &Checker{t: t, rank: r, out: out, producers: producers, bytes: make([]byte, out.Size())}
	var regions [][]kernels.Region
	for i := range producers {
		chunks, err := t.Chunks(r, out.Rows(i*t.Rows, (i+1)*t.Rows).Window())
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

// Launch starts the consumer on a stream of its own, beside the producer.
func (c *Checker) Launch(h plan.Handle) error {
	return c.stream.Launch(kernels.Consumer, kernels.Waits(kernels.Grid(c.t.Programs)), h, c.out, c.table, c.t.Seed, c.errors)
}

// Check looks at what the round left: the consumer's findings, and every byte.
// The error is a *WrongError if there are wrong ones.
func (c *Checker) Check(round uint64) error {
	found := make([]uint64, kernels.ErrorRow/8)
	if err := heap.Read(c.errors, found); err != nil {
		return err
	}
	err := Wrong(c.rank.ID(), round, found[kernels.ErrorBytes/8], "chunk %d, by the consumer", int64(found[kernels.ErrorChunk/8])-1)
	if err != nil {
		return err
	}
	if err := c.out.Read(c.bytes); err != nil {
		return err
	}
	per := len(c.bytes) / len(c.producers)
	for i, from := range c.producers {
		at := i * per
		n := kernels.CheckPattern(c.bytes[at:at+per], kernels.SeedOf(c.t.Seed, from, round), uint64(at))
		if err := Wrong(c.rank.ID(), round, uint64(n), "rank %d's rows", from); err != nil {
			return err
		}
	}
	return nil
}
