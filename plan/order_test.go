package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/rank"
)

// two makes two plans over the same queues, on buffers of their own.
func two(ctx context.Context, r *rank.Rank) (ga, gb *rig, a, b *Plan, err error) {
	if ga, err = newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7); err != nil {
		return
	}
	if gb, err = newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 8); err != nil {
		return
	}
	if a, err = New(ctx, r, ga.out, ga.mine); err != nil {
		return
	}
	b, err = New(ctx, r, gb.out, gb.mine)
	return
}

func TestPlansOfAWorldStartInTheOrderTheyWerePrepared(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		ga, gb, a, b, err := two(ctx, r)
		if err != nil {
			return err
		}
		_, err = b.Start(ctx)
		order, bad := expect[*copyengine.OrderError](err)
		if bad != nil {
			return bad
		}
		if order.First.Plan != a.String() {
			return fmt.Errorf("the error names %v, not %v", order.First, a)
		}
		if err := state(b, Prepared); err != nil {
			return err
		}
		for range 5 {
			if err := ga.round(ctx, a); err != nil {
				return err
			}
			if err := gb.round(ctx, b); err != nil {
				return err
			}
			if err := a.NextRound(ctx); err != nil {
				return err
			}
			if err := b.NextRound(ctx); err != nil {
				return err
			}
		}
		return errors.Join(a.Close(ctx), b.Close(ctx))
	})
}

// Both may run at once once both have started.
func TestPlansThatShareQueuesRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		ga, gb, a, b, err := two(ctx, r)
		if err != nil {
			return err
		}
		for range 10 {
			ha, err := a.Start(ctx)
			if err != nil {
				return err
			}
			hb, err := b.Start(ctx)
			if err != nil {
				return err
			}
			// The second one's chunks are marked first, and wait in the queue.
			if err := gb.produce(b, hb); err != nil {
				return err
			}
			if err := ga.produce(a, ha); err != nil {
				return err
			}
			if err := errors.Join(b.Wait(ctx), a.Wait(ctx)); err != nil {
				return err
			}
			if err := errors.Join(ga.check(ha.Round()), gb.check(hb.Round())); err != nil {
				return err
			}
			if err := errors.Join(a.NextRound(ctx), b.NextRound(ctx)); err != nil {
				return err
			}
		}
		return errors.Join(b.Close(ctx), a.Close(ctx))
	})
}

// Behind another world's plan Start waits under its context.
func TestStartWaitsBehindAnotherWorldsPlan(t *testing.T) {
	t.Parallel()
	node, err := rank.NewNode(rank.NodeConfig{RingBytes: ringBytes})
	if err != nil {
		t.Fatal(err)
	}
	prepared, tried := newGathering(2+2), newGathering(2+2)
	var group errgroup.Group
	body := func(first bool) func(context.Context, *rank.Rank) error {
		return func(ctx context.Context, r *rank.Rank) error {
			g, err := newRig(ctx, r, shape{chunks: 1, rows: 2, cols: 64}, 7)
			if err != nil {
				return err
			}
			if !first {
				if err := prepared.meet(ctx); err != nil {
					return err
				}
			}
			p, err := New(ctx, r, g.out, g.mine)
			if err != nil {
				return err
			}
			if first {
				if err := errors.Join(prepared.meet(ctx), tried.meet(ctx)); err != nil {
					return err
				}
			} else {
				soon, cancel := short(ctx)
				_, err := p.Start(soon)
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("got %v, want a Start that waits", err)
				}
				if err := errors.Join(state(p, Prepared), tried.meet(ctx)); err != nil {
					return err
				}
			}
			if err := g.rounds(ctx, p, 5); err != nil {
				return err
			}
			return p.Close(ctx)
		}
	}
	for _, first := range []bool{true, false} {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return rank.Run(ctx, world{ranks: 2, node: node}.config(t), body(first))
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Worlds that prepare on shared queues at the same moment get one order on
// every queue: with two orders, each would wait for the other for ever.
func TestWorldsThatPrepareAtTheSameMomentNeverDeadlock(t *testing.T) {
	t.Parallel()
	node, err := rank.NewNode(rank.NodeConfig{RingBytes: ringBytes})
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	for seed := range uint64(3) {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			return rank.Run(ctx, world{ranks: 3, node: node}.config(t), func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, seed)
				if err != nil {
					return err
				}
				p, err := New(ctx, r, g.out, g.mine)
				if err != nil {
					return err
				}
				if err := g.rounds(ctx, p, 60); err != nil {
					return err
				}
				return p.Close(ctx)
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if qs := node.Queues(); len(qs) > 0 {
		t.Fatalf("%d queues are left after the last world", len(qs))
	}
}

func TestPutAndQuietAreRefusedWhileCopiesArePreparedAndWorkAfterwards(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		dst, err := r.Zeros(ctx, heap.Uint64, 4)
		if err != nil {
			return err
		}
		src, err := r.Zeros(ctx, heap.Uint64, 4)
		if err != nil {
			return err
		}
		other := 1 - r.ID()
		put := func(v uint64) error {
			if err := heap.Write(src, []uint64{v, v + 1, v + 2, uint64(r.ID())}); err != nil {
				return err
			}
			if err := r.Put(ctx, other, dst, src, rank.PutOptions{}); err != nil {
				return err
			}
			if err := r.Quiet(ctx, other); err != nil {
				return err
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			got := make([]uint64, 4)
			if err := heap.Read(dst, got); err != nil {
				return err
			}
			if got[0] != v || got[1] != v+1 || got[2] != v+2 || got[3] != uint64(other) {
				return fmt.Errorf("rank %d got %v for %d", r.ID(), got, v)
			}
			return r.Barrier(ctx)
		}
		if err := put(1); err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		for i := range uint64(5) {
			for _, err := range []error{r.Put(ctx, other, dst, src, rank.PutOptions{}), r.Quiet(ctx, other)} {
				if _, err := expect[*copyengine.ExclusionError](err); err != nil {
					return err
				}
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			if err := g.round(ctx, p); err != nil {
				return err
			}
			if err := put(10 * i); err != nil { // after Wait nothing is prepared
				return err
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
		return put(100)
	})
}

// A Put that waits for its flag keeps plans off its queue until it is gone.
func TestNothingIsPreparedBehindAPutThatWaitsForItsFlag(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		flag, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			err := r.Put(ctx, 1, g.programs[0], g.programs[1], rank.PutOptions{After: flag, Value: 5})
			if err != nil {
				return err
			}
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		_, err = New(ctx, r, g.out, g.mine)
		if !errors.Is(err, copyengine.ErrPutWaits) {
			return fmt.Errorf("got %v, want ErrPutWaits", err)
		}
		if r.ID() == 0 {
			if err := r.Store(flag, 0, 5); err != nil {
				return err
			}
			if err := r.Quiet(ctx, 1); err != nil {
				return err
			}
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := g.rounds(ctx, p, 3); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

// Closing a world stores the value that a Put waits for.
func TestClosingAWorldLetsAPutThatWaitsGo(t *testing.T) {
	t.Parallel()
	start := time.Now()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		flag, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		dst, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		src, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		return r.Put(ctx, 1-r.ID(), dst, src, rank.PutOptions{After: flag, Value: 9})
	})
	if time.Since(start) > patience/2 {
		t.Error("closing waited for the Put")
	}
}
