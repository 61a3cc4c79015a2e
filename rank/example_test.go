package rank_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/rank"
)

// Three ranks each write their own element of a tensor of their own, meet, and
// read their neighbour's.
func Example() {
	var read [3]int32
	err := rank.Run(context.Background(), rank.Config{Ranks: 3, Platform: "host"}, func(ctx context.Context, r *rank.Rank) error {
		x, err := r.Zeros(ctx, heap.Int32, 1)
		if err != nil {
			return err
		}
		if err := heap.Write(x, []int32{int32(10 * r.ID())}); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		right := x.At((r.ID() + 1) % r.Size())
		return heap.Read(right, read[r.ID():r.ID()+1])
	})
	fmt.Println(read, err)
	// Output:
	// [10 20 0] <nil>
}

// A driver that keeps its world opens it once, and runs its ranks as often as
// it likes: what they leave open stays.
func ExampleOpen() {
	ctx := context.Background()
	world, err := rank.Open(ctx, rank.Config{Ranks: 2, Platform: "host"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var counts [2]*heap.Tensor
	err = world.Run(ctx, func(ctx context.Context, r *rank.Rank) (err error) {
		counts[r.ID()], err = r.Zeros(ctx, heap.Int64, 1)
		return err
	})
	for step := int64(1); step <= 3 && err == nil; step++ {
		err = world.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			return heap.Write(counts[r.ID()], []int64{step * int64(1+r.ID())})
		})
	}
	var last [1]int64
	err = errors.Join(err, heap.Read(counts[1], last[:]))
	fmt.Println(last[0], errors.Join(err, world.Close(ctx)))
	// Output:
	// 6 <nil>
}

// A rank that fails ends the others' waits, and the error says which it was.
func ExampleRun() {
	full := errors.New("the disk is full")
	err := rank.Run(context.Background(), rank.Config{Ranks: 4, Platform: "host"}, func(ctx context.Context, r *rank.Rank) error {
		if r.ID() == 2 {
			return full
		}
		return r.Barrier(ctx)
	})
	fmt.Println(errors.Is(err, full))
	var failed *rank.Error
	if errors.As(err, &failed) {
		fmt.Println(failed)
	}
	// Output:
	// true
	// rank 2: the disk is full
}
