package rank

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/triggeredplans/sluice/heap"
)

// Blocks come back dirty, so zeros are not what a first allocation has anyway.
func TestZerosIsZeroAndAtTheSameOffsetOnEveryRank(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	offsets := map[int][]int64{}
	run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		for i := range 8 {
			x, err := r.Zeros(ctx, heap.Int32, 10, 3+i%2)
			if err != nil {
				return err
			}
			mu.Lock()
			offsets[r.ID()] = append(offsets[r.ID()], x.Block().Offset())
			mu.Unlock()
			if err := errors.Join(blank(x), blank(x.At(right(r))), r.Barrier(ctx)); err != nil {
				return err
			}
			if err := errors.Join(fill(x, r.ID(), uint64(i)), check(x, r.ID(), uint64(i))); err != nil {
				return err
			}
			if i%3 == 2 {
				continue
			}
			if err := r.Free(ctx, x); err != nil {
				return err
			}
			if _, bad := expect[*heap.FreedError](x.Err()); bad != nil {
				return bad
			}
		}
		return nil
	})
	for r := range 3 {
		if fmt.Sprint(offsets[r]) != fmt.Sprint(offsets[0]) {
			t.Errorf("rank %d has the offsets %v, rank 0 %v", r, offsets[r], offsets[0])
		}
	}
}

// alike has every rank call Zeros or Free, checks everybody's error, and that
// the heap is as before and works.
func alike(t *testing.T, call func(ctx context.Context, r *Rank) error, want func(error) error) {
	t.Helper()
	run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		before := r.World().Heap().Used()
		if err := want(call(ctx, r)); err != nil {
			return err
		}
		if now := r.World().Heap().Used(); now != before {
			return fmt.Errorf("the heap went from %d to %d bytes", before, now)
		}
		x, err := r.Zeros(ctx, heap.Uint8, 100)
		if err != nil {
			return err
		}
		return r.Free(ctx, x)
	})
}

func TestAMistakeInZerosIsEveryRanksError(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context, r *Rank) error
		want func(error) error
	}{
		"different shapes": {func(ctx context.Context, r *Rank) error {
			_, err := r.Zeros(ctx, heap.Uint8, 4, 1+r.ID()/2)
			return err
		}, func(err error) error {
			e, bad := expect[*ShapeError](err)
			if bad == nil && (e.Rank != 0 || e.OtherRank != 2) {
				bad = fmt.Errorf("the error names other ranks: %v", err)
			}
			return bad
		}},
		"different types": {func(ctx context.Context, r *Rank) error {
			_, err := r.Zeros(ctx, []heap.DType{heap.Int32, heap.Float32, heap.Int32}[r.ID()], 4)
			return err
		}, func(err error) error {
			_, bad := expect[*ShapeError](err)
			return bad
		}},
		"one rank's shape is none": {func(ctx context.Context, r *Rank) error {
			_, err := r.Zeros(ctx, heap.Uint8, 4, r.ID()-1)
			return err
		}, func(err error) error {
			v, bad := expect[*VoteError](err)
			if bad != nil {
				return bad
			}
			if v.Rank != 0 { // the first of two
				return fmt.Errorf("the error names rank %d", v.Rank)
			}
			_, bad = expect[*heap.ShapeError](err)
			return bad
		}},
		"no room": {func(ctx context.Context, r *Rank) error {
			_, err := r.Zeros(ctx, heap.Uint8, 1<<20+1)
			return err
		}, func(err error) error {
			e, bad := expect[*heap.ExhaustedError](err)
			if bad == nil && e.Want != 1<<20+1 {
				bad = fmt.Errorf("the error is wrong: %v", err)
			}
			return bad
		}},
		"a context that has ended": {func(ctx context.Context, r *Rank) error {
			if r.ID() == 1 {
				ctx = ended(ctx)
			}
			_, err := r.Zeros(ctx, heap.Uint8, 4)
			return err
		}, func(err error) error { return wantIs(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alike(t, c.call, c.want)
		})
	}
}

func TestAMistakeInFreeIsEveryRanksErrorAndFreesNothing(t *testing.T) {
	foreign := open(t, config(t, 3, NodeConfig{}))
	var others [3]*heap.Tensor
	err := foreign.Run(context.Background(), func(ctx context.Context, r *Rank) (err error) {
		others[r.ID()], err = r.Zeros(ctx, heap.Uint8, 8)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pick func(r *Rank, a, b *heap.Tensor) *heap.Tensor
		rank int
		want error
	}{
		"different tensors": {func(r *Rank, a, b *heap.Tensor) *heap.Tensor { return []*heap.Tensor{a, a, b}[r.ID()] }, 2, nil},
		"no tensor":         {func(r *Rank, a, b *heap.Tensor) *heap.Tensor { return []*heap.Tensor{a, nil, a}[r.ID()] }, 1, ErrNoTensor},
		"another world's":   {func(r *Rank, a, b *heap.Tensor) *heap.Tensor { return others[r.ID()] }, 0, ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
				ts, err := tensors(ctx, r, heap.Uint8, []int{100}, []int{100})
				if err != nil {
					return err
				}
				err = r.Free(ctx, c.pick(r, ts[0], ts[1]))
				e, bad := expect[*TensorError](err)
				if bad != nil {
					return bad
				}
				if e.Rank != c.rank || e.Op != "Free" || c.want != nil && !errors.Is(err, c.want) {
					return fmt.Errorf("the error is wrong: %v", err)
				}
				return errors.Join(ts[0].Err(), ts[1].Err(), r.Free(ctx, ts[0]), r.Free(ctx, ts[1]))
			})
		})
	}
	for _, x := range others {
		if x.Err() != nil {
			t.Error("the other world's tensor was freed")
		}
	}
	t.Run("twice", func(t *testing.T) {
		run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			x, err := r.Zeros(ctx, heap.Uint8, 100)
			if err != nil {
				return err
			}
			if err := r.Free(ctx, x.Rows(3, 4)); err != nil { // a part stands for its block
				return err
			}
			_, bad := expect[*heap.FreedError](r.Free(ctx, x))
			return bad
		})
	})
}

func TestAWordIsAnElementOfAGaplessTensorOfWords(t *testing.T) {
	t.Parallel()
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		x, err := r.Zeros(ctx, heap.Uint64, 4, 4)
		if err != nil {
			return err
		}
		small, err := r.Zeros(ctx, heap.Uint32, 4)
		if err != nil {
			return err
		}
		part := x.Rows(1, 3)
		for i := range part.Len() {
			if err := r.Store(part, i, uint64(100*r.ID()+i)); err != nil {
				return err
			}
			if v, err := r.Load(x, 4+i); err != nil || v != uint64(100*r.ID()+i) {
				return errors.Join(err, fmt.Errorf("element %d is %d", 4+i, v))
			}
			if err := r.Await(ended(ctx), part, i, uint64(100*r.ID()+i)); err != nil { // it is there already
				return err
			}
			if err := wantIs(r.Await(ended(ctx), part, i, uint64(100*r.ID()+i+1)), context.Canceled); err != nil {
				return err
			}
		}
		for _, c := range []struct {
			t *heap.Tensor
			i int
		}{{nil, 0}, {small, 0}, {x, -1}, {x, 16}, {part, 8}, {x.Cols(0, 2), 0}, {x.Rows(0, 9), 0}} {
			_, load := r.Load(c.t, c.i)
			for op, err := range map[string]error{"Load": load, "Store": r.Store(c.t, c.i, 1), "Await": r.Await(ctx, c.t, c.i, 1)} {
				e, bad := expect[*TensorError](err)
				if bad != nil {
					return bad
				}
				if e.Op != op || e.Rank != r.ID() {
					return fmt.Errorf("the error is wrong: %v", err)
				}
			}
		}
		return nil
	})
}
