package plan

import (
	"context"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// NewAllGather is New for an in-place all-gather: out's rows are divided
// equally among the ranks, and each rank's chunks must stay inside its own.
// With nil chunks a rank sends its rows as one chunk that is marked once. The
// error is that of New; it wraps an *OutsideError if a region is in another
// rank's rows, and a *RowsError if the rows cannot be divided.
func NewAllGather(ctx context.Context, r *rank.Rank, out *heap.Tensor, chunks schedule.Schedule) (*Plan, error) {
	mine := &proposal{rank: r, out: out, chunks: chunks, first: 1}
	return mine.make(ctx, mine.ownRows())
}

// ownRows gives a proposal without chunks the rank's rows, and checks that
// the chunks stay inside them.
func (mine *proposal) ownRows() error {
	r := mine.rank
	if r.Check(mine.out) != nil {
		return mine.validate()
	}
	n := mine.out.Shape()[0]
	if n%r.Size() != 0 {
		return &RowsError{Rows: n, Ranks: r.Size()}
	}
	per := n / r.Size()
	rows := mine.out.Rows(r.ID()*per, (r.ID()+1)*per)
	if mine.chunks == nil {
		var err error
		mine.chunks, err = schedule.Whole(rows.Window(), 1, schedule.Options{LargestCopy: r.Device().Properties().LargestCopy})
		if err != nil {
			return err
		}
	}
	if err := mine.validate(); err != nil {
		return err
	}
	return within(r.ID(), mine.chunks, rows, fmt.Sprintf("its rows %d to %d", r.ID()*per, (r.ID()+1)*per-1))
}
