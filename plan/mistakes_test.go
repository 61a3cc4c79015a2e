package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// mistake has every rank do something wrong, checks the error of each, and
// then that a right plan works.
func mistake(t *testing.T, ranks int, wrong func(ctx context.Context, g *rig) error, want func(r *rank.Rank, err error) error) {
	t.Helper()
	world{ranks: ranks}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		if err := want(r, wrong(ctx, g)); err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		return errors.Join(g.rounds(ctx, p, 2), p.Close(ctx))
	})
}

func TestRanksThatMeetInDifferentCollectivesAllGetAnError(t *testing.T) {
	t.Parallel()
	mistake(t, 3, func(ctx context.Context, g *rig) error {
		if g.ID() == 1 {
			return g.Barrier(ctx)
		}
		_, err := New(ctx, g.Rank, g.out, g.mine)
		return err
	}, func(r *rank.Rank, err error) error {
		_, err = expect[*rank.MismatchError](err)
		return err
	})
}

func TestRanksThatPassDifferentBuffersAllGetAnError(t *testing.T) {
	t.Parallel()
	mistake(t, 2, func(ctx context.Context, g *rig) error {
		other, err := g.Zeros(ctx, heap.Uint8, g.out.Shape()...)
		if err != nil {
			return err
		}
		if g.ID() == 1 {
			_, err = New(ctx, g.Rank, other, g.mine)
		} else {
			_, err = New(ctx, g.Rank, g.out, g.mine)
		}
		return err
	}, func(r *rank.Rank, err error) error {
		if !errors.Is(err, ErrBuffer) {
			return fmt.Errorf("got %v, want ErrBuffer", err)
		}
		return nil
	})
}

// Every rank builds its schedule from the whole buffer instead of its part.
func TestTwoRanksMayNotSendTheSameBytes(t *testing.T) {
	t.Parallel()
	mistake(t, 3, func(ctx context.Context, g *rig) error {
		whole, err := schedule.Whole(g.out.Window(), 1, schedule.Options{})
		if err != nil {
			return err
		}
		_, err = New(ctx, g.Rank, g.out, whole)
		return err
	}, func(r *rank.Rank, err error) error {
		o, bad := expect[*OverlapError](err)
		if bad == nil && (o.RankA != 0 || o.RankB != 1 || o.Lo != 0 || o.Hi != 3*2*2*64) {
			return fmt.Errorf("the error is wrong: %+v", o)
		}
		return bad
	})
}

func TestAPlanThatSendsNothingIsRefused(t *testing.T) {
	t.Parallel()
	mistake(t, 2, func(ctx context.Context, g *rig) error {
		_, err := New(ctx, g.Rank, g.out, nil)
		return err
	}, func(r *rank.Rank, err error) error {
		if !errors.Is(err, ErrEmpty) {
			return fmt.Errorf("got %v, want ErrEmpty", err)
		}
		return nil
	})
}

// One rank's schedule is wrong; all learn which rank, chunk and region.
func TestAnInvalidScheduleFailsOnEveryRankAndNamesChunkAndRegion(t *testing.T) {
	bad := map[string]struct {
		change func(schedule.Schedule)
		kind   error
	}{
		"past the buffer": {func(s schedule.Schedule) { s[1].Regions[0].Offset = 1 << 30 }, schedule.ErrBounds},
		"negative":        {func(s schedule.Schedule) { s[1].Regions[0].Offset = -1 }, schedule.ErrBounds},
		"overflow":        {func(s schedule.Schedule) { s[1].Regions[0].Offset = math.MaxInt64 - 3 }, schedule.ErrBounds},
		"zero width":      {func(s schedule.Schedule) { s[1].Regions[0].Width = 0 }, schedule.ErrSize},
		"pitch":           {func(s schedule.Schedule) { s[1].Regions[0] = schedule.Region{Width: 8, Height: 2, Pitch: 7} }, schedule.ErrPitch},
		"no writers":      {func(s schedule.Schedule) { s[1].Writers = 0 }, schedule.ErrWriters},
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mistake(t, 3, func(ctx context.Context, g *rig) error {
				chunks, err := g.chunks(g.ID())
				if err != nil {
					return err
				}
				if g.ID() == 2 {
					b.change(chunks)
				}
				_, err = New(ctx, g.Rank, g.out, chunks)
				return err
			}, func(r *rank.Rank, err error) error {
				v, bad := expect[*rank.VoteError](err)
				if bad != nil {
					return bad
				}
				s, bad := expect[*schedule.Error](err)
				if bad != nil {
					return bad
				}
				if v.Rank != 2 || s.Chunk != 1 || !errors.Is(err, b.kind) {
					return fmt.Errorf("rank %d, chunk %d, kind %v: %w", v.Rank, s.Chunk, s.Kind, err)
				}
				return nil
			})
		})
	}
}

// Regions lie inside the tensor that the plan was made with, also when it is a
// part of its allocation.
func TestRegionsOutsideThePlansTensorAreRefused(t *testing.T) {
	t.Parallel()
	mistake(t, 2, func(ctx context.Context, g *rig) error {
		_, err := New(ctx, g.Rank, g.out.Rows(0, 6), g.mine)
		return err
	}, func(r *rank.Rank, err error) error {
		o, bad := expect[*OutsideError](err)
		if bad == nil && (o.Rank != 1 || o.Chunk != 1) {
			return fmt.Errorf("the error is wrong: %+v", o)
		}
		return bad
	})
}

func TestAnAllGatherStaysInItsOwnRows(t *testing.T) {
	t.Parallel()
	mistake(t, 2, func(ctx context.Context, g *rig) error {
		chunks, err := g.chunks(1 - g.ID()) // the other's rows
		if err != nil {
			return err
		}
		_, err = NewAllGather(ctx, g.Rank, g.out, chunks)
		return err
	}, func(r *rank.Rank, err error) error {
		_, err = expect[*OutsideError](err)
		return err
	})
	mistake(t, 3, func(ctx context.Context, g *rig) error {
		_, err := NewAllGather(ctx, g.Rank, g.out.Rows(0, 4), nil)
		return err
	}, func(r *rank.Rank, err error) error {
		e, bad := expect[*RowsError](err)
		if bad == nil && *e != (RowsError{Rows: 4, Ranks: 3}) {
			return fmt.Errorf("the error is wrong: %v", err)
		}
		return bad
	})
}

func TestAnAllGatherWithoutChunksSendsEachRanksRowsAsOne(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 4, cols: 64}, 7)
		if err != nil {
			return err
		}
		p, err := NewAllGather(ctx, r, g.out, nil)
		if err != nil {
			return err
		}
		if p.Chunks() != 3 {
			return fmt.Errorf("%d chunks, want 3", p.Chunks())
		}
		return errors.Join(g.rounds(ctx, p, 3), p.Close(ctx))
	})
}

func TestCallsInTheWrongStateSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		start := func(ctx context.Context) error { _, err := p.Start(ctx); return err }
		wrong := func(now State, calls ...func(context.Context) error) error {
			for _, call := range calls {
				e, bad := expect[*StateError](call(ctx))
				if bad != nil {
					return bad
				}
				if e.State != now {
					return fmt.Errorf("the error says %v, not %v", e.State, now)
				}
				if err := state(p, now); err != nil {
					return err
				}
			}
			return nil
		}
		if err := wrong(Prepared, p.Wait, p.NextRound); err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if err := wrong(Started, start, p.NextRound); err != nil {
			return err
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if err := wrong(Done, start, p.Wait); err != nil {
			return err
		}
		if err := p.NextRound(ctx); err != nil {
			return err
		}
		return errors.Join(g.round(ctx, p), p.Close(ctx))
	})
}

func TestAHandleIsForItsRankAndRound(t *testing.T) {
	t.Parallel()
	handles := make([]Handle, 2)
	taken := newGathering(2)
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		handles[r.ID()] = h
		if err := taken.meet(ctx); err != nil {
			return err
		}
		nothing := func(h Handle) error {
			return r.Launch(kernels.Script, kernels.Grid(1), h, g.programs[3]) // which has no lists
		}
		if _, err := expect[*HandleError](nothing(handles[1-r.ID()])); err != nil {
			return err
		}
		if _, err := expect[*HandleError](nothing(Handle{})); err != nil {
			return err
		}
		if err := errors.Join(nothing(h), g.produce(p, h), p.Wait(ctx), p.NextRound(ctx)); err != nil {
			return err
		}
		if _, err := expect[*HandleError](nothing(h)); err != nil {
			return err
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
		_, err = expect[*HandleError](nothing(Handle{plan: p, round: 2}))
		return err
	})
}

func TestUseOfAClosedWorldIsAnError(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w, err := rank.Open(ctx, world{ranks: 1}.config(t))
	if err != nil {
		t.Fatal(err)
	}
	var g *rig
	var p *Plan
	err = w.Run(ctx, func(ctx context.Context, r *rank.Rank) (err error) {
		if g, err = newRig(ctx, r, shape{chunks: 1, rows: 2, cols: 64}, 7); err != nil {
			return err
		}
		p, err = New(ctx, r, g.out, g.mine)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(ctx), w.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := state(p, Closed); err != nil {
		t.Error(err)
	}
	if err := w.Run(ctx, func(context.Context, *rank.Rank) error { return nil }); !errors.Is(err, rank.ErrClosed) {
		t.Errorf("Run: got %v, want ErrClosed", err)
	}
	if _, err := New(ctx, g.Rank, g.out, g.mine); err == nil {
		t.Error("New worked in a closed world")
	}
	if err := g.Barrier(ctx); !errors.Is(err, rank.ErrClosed) {
		t.Errorf("Barrier: got %v, want ErrClosed", err)
	}
}

// An engine that stops fails the plans it carries, on the rank that owns the
// queue at once and on the others at the next collective; closing makes the
// queue anew.
func TestAFaultedQueueFailsItsPlansAndIsMadeAnewWhenTheyAreClosed(t *testing.T) {
	hostOnly(t, "packets that a test can fail")
	t.Parallel()
	var armed atomic.Bool
	seen := newGathering(2) // ranks 0 and 1
	cfg := rank.NodeConfig{Intercept: func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if armed.Load() && from.Device == 0 && to.Device == 1 && p.Op == sdma.OpCopyLinear {
			return errInjected
		}
		return nil
	}}
	world{ranks: 3, cfg: cfg}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		armed.Store(true)
		if err := errors.Join(g.produce(p, h), r.Sync(ctx)); err != nil {
			return err
		}
		soon, cancel := context.WithCancel(ctx)
		defer cancel()
		if r.ID() == 1 { // rank 0's chunks will not come
			if err := seen.meet(ctx); err != nil {
				return err
			}
			soon, cancel = short(ctx)
			defer cancel()
		}
		err = p.Wait(soon)
		if r.ID() == 0 {
			if err := seen.meet(ctx); err != nil {
				return err
			}
		}
		switch r.ID() {
		case 0:
			if _, err := expect[*copyengine.FaultError](err); err != nil {
				return err
			}
			if !errors.Is(err, errInjected) {
				return fmt.Errorf("%v does not wrap the engine's error", err)
			}
		case 1:
			if _, err := expect[*TimeoutError](err); err != nil {
				return err
			}
			if !errorHas(err, "has faulted") {
				return fmt.Errorf("%v does not say that the queue has faulted", err)
			}
		case 2:
			if err != nil {
				return err
			}
		}
		if err := p.NextRound(ctx); err == nil {
			return errors.New("NextRound worked after a fault")
		}
		if err := state(p, Failed); err != nil {
			return err
		}
		armed.Store(false)
		if err := p.Close(ctx); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if p, err = New(ctx, r, g.out, g.mine); err != nil {
			return err
		}
		return errors.Join(g.rounds(ctx, p, 3), p.Close(ctx))
	})
}
