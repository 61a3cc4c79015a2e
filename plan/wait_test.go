package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// started is a rig with a plan that has started.
func started(ctx context.Context, r *rank.Rank, s shape) (*rig, *Plan, Handle, error) {
	g, err := newRig(ctx, r, s, 7)
	if err != nil {
		return nil, nil, Handle{}, err
	}
	p, err := New(ctx, r, g.out, g.mine)
	if err != nil {
		return nil, nil, Handle{}, err
	}
	h, err := p.Start(ctx)
	return g, p, h, err
}

// Extra marks end the wait at once, though the round can never complete here:
// the other rank marks nothing, and a kernel still runs.
func TestWaitFailsAtOnceOnExtraMarks(t *testing.T) {
	t.Parallel()
	failed := newGathering(2)
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64, writers: 2})
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			err := g.script(h, 1, func(prog *kernels.Program) {
				prog.On(0).Mark(1).Mark(1).Mark(1).Wait(2) // which is rank 1's, and never comes
			})
			if err != nil {
				return err
			}
			err = p.Wait(ctx)
			marks, bad := expect[*MarksError](err)
			if bad != nil {
				return bad
			}
			if len(marks.Extra) != 1 || marks.Extra[0] != (Miscount{Chunk: 1, Owner: 0, Seen: 3, Expected: 2}) {
				return fmt.Errorf("the error is wrong: %+v", marks)
			}
			if want := "chunk 1 was marked 3 times, its writers are 2"; !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%q is not in %q", want, err)
			}
			if err := state(p, Failed); err != nil {
				return err
			}
		}
		if err := failed.meet(ctx); err != nil {
			return err
		}
		if r.ID() == 0 { // a mistake of one rank reaches the others at the next collective
			if _, err := expect[*StateError](p.NextRound(ctx)); err != nil {
				return err
			}
		} else {
			if err := errors.Join(g.produce(p, h), r.Sync(ctx)); err != nil {
				return err
			}
			soon, cancel := short(ctx) // rank 0's first chunk is never marked
			defer cancel()
			if _, err := expect[*TimeoutError](p.Wait(soon)); err != nil {
				return err
			}
			if err := p.NextRound(ctx); err == nil {
				return errors.New("NextRound worked with a failed peer")
			}
		}
		return p.Close(ctx)
	})
}

// A rank whose own round went well learns at NextRound that a peer's did not.
func TestAFailedPeerMakesThePlanFailAtTheNextCollective(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		if r.ID() == 1 {
			err := g.script(h, 1, func(prog *kernels.Program) { prog.On(0).Mark(p.FirstChunk()) }) // a second time
			if err != nil {
				return err
			}
		}
		err = p.Wait(ctx)
		if r.ID() == 1 {
			if _, err := expect[*MarksError](err); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		err = p.NextRound(ctx)
		marks, bad := expect[*MarksError](err)
		if bad != nil {
			return bad
		}
		if marks.Rank != 1 {
			return fmt.Errorf("the error names rank %d, not 1", marks.Rank)
		}
		if err := state(p, Failed); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

// A mark that comes after Wait would open the next round's gate early.
func TestAnExtraMarkAfterWaitFailsNextRound(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64, writers: 2})
		if err != nil {
			return err
		}
		if err := errors.Join(g.produce(p, h), p.Wait(ctx)); err != nil {
			return err
		}
		if r.ID() == 1 {
			if err := g.script(h, 1, func(prog *kernels.Program) { prog.On(0).Mark(2) }); err != nil {
				return err
			}
		}
		marks, bad := expect[*MarksError](p.NextRound(ctx))
		if bad != nil {
			return bad
		}
		if marks.Rank != 1 || len(marks.Extra) != 1 || marks.Extra[0].Chunk != 2 || marks.Extra[0].Seen != 3 {
			return fmt.Errorf("the error is wrong: %+v", marks)
		}
		if err := state(p, Failed); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

func TestMarksOfChunksThatAreNotTheRanksAreDroppedAndMakeWaitFail(t *testing.T) {
	for _, chunk := range []int{2, 4, 1 << 40} { // rank 1's, and two that are nobody's
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			t.Parallel()
			world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
				if err != nil {
					return err
				}
				if r.ID() == 0 {
					if err := g.script(h, 1, func(prog *kernels.Program) { prog.On(0).Mark(chunk) }); err != nil {
						return err
					}
				}
				if err := errors.Join(g.produce(p, h), r.Sync(ctx)); err != nil {
					return err
				}
				err = p.Wait(ctx)
				if r.ID() == 1 {
					if err != nil {
						return err
					}
					return errors.Join(g.check(1), p.Close(ctx))
				}
				marks, bad := expect[*MarksError](err)
				if bad != nil {
					return bad
				}
				if marks.Foreign != 1 || marks.Last != uint64(chunk) || marks.First != 0 || marks.Own != 2 {
					return fmt.Errorf("the error is wrong: %+v", marks)
				}
				return p.Close(ctx)
			})
		})
	}
}

// On a deadline the error names every short chunk and what it waits for. Time
// is the bubble's, so nothing here takes any.
func TestATimeoutNamesEveryShortChunkAndWhatItWaitsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := newGathering(2)
		world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
			g, p, h, err := started(ctx, r, shape{chunks: 3, rows: 2, cols: 64, writers: 2})
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				err := g.script(h, 1, func(prog *kernels.Program) {
					prog.On(0).Mark(0).Mark(1).Mark(1) // chunk 0 has one of two marks
				})
				if err != nil {
					return err
				}
			}
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err = p.Wait(soon)
			if err := ended.meet(ctx); err != nil { // Close opens gates
				return err
			}
			short, bad := expect[*TimeoutError](err)
			if bad != nil {
				return bad
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("%v does not unwrap to the deadline", err)
			}
			text := err.Error()
			for _, want := range []string{
				"round 1",
				"chunk 0 of rank 0: it has 1 of its 2 marks",
				"chunk 1 of rank 0 at rank 1: it is marked, but waits behind chunk 0",
				"chunk 2 of rank 0: it has 0 of its 2 marks",
				"chunk 3 of rank 1: it has 0 of its 2 marks",
			} {
				if !strings.Contains(text, want) {
					return fmt.Errorf("%q is not in %q", want, text)
				}
			}
			if len(short.Short) != 6 {
				return fmt.Errorf("%d chunks are short, want 6: %s", len(short.Short), text)
			}
			return p.Close(ctx)
		})
	})
}

// A chunk that is marked but queued behind another plan's says behind which.
func TestATimeoutNamesThePlanThatIsInFront(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := newGathering(2)
		world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
			_, gb, a, b, err := two(ctx, r)
			if err != nil {
				return err
			}
			if _, err := a.Start(ctx); err != nil {
				return err
			}
			h, err := b.Start(ctx)
			if err != nil {
				return err
			}
			if err := gb.produce(b, h); err != nil {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err = b.Wait(soon)
			if err := ended.meet(ctx); err != nil {
				return err
			}
			if want := fmt.Sprintf("waits behind %v (rank %d, round 1)", a, r.ID()); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%q is not in %v", want, err)
			}
			return errors.Join(a.Close(ctx), b.Close(ctx))
		})
	})
}

// A kernel that still runs when the deadline comes is named.
func TestATimeoutNamesTheKernelThatStillRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ended := newGathering(2)
		world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
			g, p, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
			if err != nil {
				return err
			}
			if err := g.script(h, 1, func(prog *kernels.Program) { prog.On(0).Wait(1 - r.ID()) }); err != nil {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			err = p.Wait(soon)
			if err := ended.meet(ctx); err != nil {
				return err
			}
			short, bad := expect[*TimeoutError](err)
			if bad != nil {
				return bad
			}
			if len(short.Running) != 1 || short.Running[0] != kernels.Script.Name {
				return fmt.Errorf("running: %v", short.Running)
			}
			return p.Close(ctx)
		})
	})
}

func TestAKernelThatPanicsFailsItsRanksWaitAndItsBody(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	t.Parallel()
	boom := &kernels.Kernel{Name: "boom", Go: func(t *hip.Thread) {
		if t.Block == 1 {
			panic("out of cheese")
		}
		t.Barrier()
	}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := rank.Run(ctx, world{ranks: 2}.config(t), func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		if r.ID() == 1 {
			return errors.Join(p.Wait(ctx), p.Close(ctx))
		}
		if err := r.Launch(boom, hip.Grid{Blocks: 2, Threads: 3}); err != nil {
			return err
		}
		err = p.Wait(ctx)
		if _, err := expect[*hip.KernelError](err); err != nil {
			return err
		}
		return p.Close(ctx) // the body ends well; the kernel's failure stands
	})
	var kernel *hip.KernelError
	if !errors.As(err, &kernel) || kernel.Kernel != "boom" || kernel.Block != 1 || !strings.Contains(err.Error(), "out of cheese") {
		t.Fatalf("got %v, want the kernel's panic", err)
	}
}
