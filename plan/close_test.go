package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// drained says that the world holds what it held before a plan.
func drained(ctx context.Context, r *rank.Rank, before string) error {
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	if after := trace(r); after != before {
		return fmt.Errorf("before: %s\nafter: %s", before, after)
	}
	return r.Barrier(ctx)
}

func TestCloseAtAnyPointSendsChunksAsTheyStandAndDrains(t *testing.T) {
	for _, at := range []string{"before Start", "in the middle of a round", "after Wait", "after a failed Wait", "after NextRound"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			waited := newGathering(3)
			world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 3, rows: 2, cols: 64}, 7)
				if err != nil {
					return err
				}
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				before := trace(r)
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				p, err := New(ctx, r, g.out, g.mine)
				if err != nil {
					return err
				}
				switch at {
				case "in the middle of a round", "after a failed Wait":
					h, err := p.Start(ctx)
					if err != nil {
						return err
					}
					// The first chunk is whole, the second is there but not marked,
					// the third not even that.
					err = g.script(h, 1, func(prog *kernels.Program) {
						l := prog.On(0)
						g.fill(l, 0, 1)
						l.Mark(p.FirstChunk())
						g.fill(l, 1, 1)
					})
					if err != nil {
						return err
					}
					if err := r.Sync(ctx); err != nil {
						return err
					}
					if at == "after a failed Wait" {
						soon, cancel := short(ctx)
						_, bad := expect[*TimeoutError](p.Wait(soon))
						cancel()
						if err := errors.Join(bad, waited.meet(ctx)); err != nil {
							return err
						}
					}
				case "after Wait":
					err = g.round(ctx, p)
				case "after NextRound":
					err = errors.Join(g.round(ctx, p), p.NextRound(ctx))
				}
				if err != nil {
					return err
				}
				if err := p.Close(ctx); err != nil {
					return err
				}
				if err := state(p, Closed); err != nil {
					return err
				}
				if at == "in the middle of a round" {
					if err := g.out.Read(g.bytes); err != nil {
						return err
					}
					for of := range r.Size() {
						chunks, err := g.chunks(of)
						if err != nil {
							return err
						}
						for c := range 2 { // as it stood: marked or not
							reg := chunks[c].Regions[0]
							if n := kernels.CheckPattern(g.bytes[reg.Offset:reg.End()], kernels.SeedOf(7, of, 1), uint64(reg.Offset)); n > 0 {
								return fmt.Errorf("chunk %d of rank %d was not sent as it stood: %d bytes are wrong", c, of, n)
							}
						}
					}
				}
				if err := p.Close(ctx); err != nil { // a second time
					return err
				}
				if err := drained(ctx, r, before); err != nil {
					return err
				}
				for _, err := range []error{p.NextRound(ctx), p.Wait(ctx)} {
					if _, err := expect[*StateError](err); err != nil {
						return err
					}
				}
				_, err = p.Start(ctx)
				if _, err := expect[*StateError](err); err != nil {
					return err
				}
				if p, err = New(ctx, r, g.out, g.mine); err != nil {
					return err
				}
				return errors.Join(g.rounds(ctx, p, 2), p.Close(ctx))
			})
		})
	}
}

func TestPlansCloseInAnyOrder(t *testing.T) {
	for name, order := range map[string][]int{"nested": {2, 1, 0}, "in order": {0, 1, 2}, "middle first": {1, 2, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
				if err != nil {
					return err
				}
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				before := trace(r)
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				var plans []*Plan
				for range 3 {
					p, err := New(ctx, r, g.out, g.mine)
					if err != nil {
						return err
					}
					plans = append(plans, p)
				}
				open := []bool{true, true, true}
				for _, i := range order {
					if err := plans[i].Close(ctx); err != nil {
						return err
					}
					open[i] = false
					// A plan is CLOSING while one before it still waits.
					want, blocked := Closed, false
					for j := range i {
						blocked = blocked || open[j]
					}
					if blocked {
						want = Closing
					}
					if err := state(plans[i], want); err != nil {
						return err
					}
					if err := plans[i].Close(ctx); err != nil { // has no effect
						return err
					}
				}
				for _, p := range plans {
					if err := state(p, Closed); err != nil {
						return err
					}
					<-p.Done()
				}
				return drained(ctx, r, before)
			})
		})
	}
}

// The earlier plan may also finish by being used.
func TestAClosingPlanEndsWhenTheEarlierOneIsDone(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		ga, _, a, b, err := two(ctx, r)
		if err != nil {
			return err
		}
		if err := b.Close(ctx); err != nil {
			return err
		}
		if err := state(b, Closing); err != nil {
			return err
		}
		if err := ga.round(ctx, a); err != nil {
			return err
		}
		select {
		case <-b.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := state(b, Closed); err != nil {
			return err
		}
		return errors.Join(a.NextRound(ctx), ga.round(ctx, a), a.Close(ctx))
	})
}

// While a rank is in Close its peers' collectives fail, and both come to Close.
func TestACollectiveOfAPlanFailsWhileARankIsInItsClose(t *testing.T) {
	for _, op := range []string{"NextRound", "Barrier"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
				if err != nil {
					return err
				}
				p, err := New(ctx, r, g.out, g.mine)
				if err != nil {
					return err
				}
				if err := g.round(ctx, p); err != nil {
					return err
				}
				if r.ID() != 1 {
					call := p.NextRound
					if op == "Barrier" {
						call = r.Barrier
					}
					if _, err := expect[*rank.ClosingError](call(ctx)); err != nil {
						return err
					}
				}
				if err := p.Close(ctx); err != nil {
					return err
				}
				return r.Barrier(ctx) // and the ranks meet again
			})
		})
	}
}

// A cancelled context cuts only the waiting.
func TestACancelledCloseStillOpensTheRanksGates(t *testing.T) {
	t.Parallel()
	cut := newGathering(2)
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			if err := p.Close(gone); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %v, want the context's error", err)
			}
			if err := state(p, Closing); err != nil {
				return err
			}
			if err := cut.meet(ctx); err != nil {
				return err
			}
			<-p.Done()
			return state(p, Closed)
		}
		if err := cut.meet(ctx); err != nil {
			return err
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		cut, bad := expect[*CutError](p.Wait(ctx)) // rank 0's chunks came as they stood
		if bad = errors.Join(bad, r.Sync(context.WithoutCancel(ctx))); bad != nil {
			return bad
		}
		if cut.Peer != 0 {
			return fmt.Errorf("the error names rank %d, not 0", cut.Peer)
		}
		return p.Close(ctx)
	})
}

// A peer that closes after it has marked everything takes nothing from the
// others' round.
func TestAPeerThatHasMarkedEverythingMayClose(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64, writers: 2})
		if err != nil {
			return err
		}
		if err := errors.Join(g.produce(p, h), r.Sync(ctx)); err != nil {
			return err
		}
		if r.ID() > 0 {
			if err := errors.Join(p.Wait(ctx), g.check(1)); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// Freeing a tensor takes effect once no plan holds it.
func TestFreeingAPlansTensorWaitsForThePlan(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		used := r.World().Heap().Used()
		if err := r.Free(ctx, g.out); err != nil {
			return err
		}
		if now := r.World().Heap().Used(); now != used {
			return fmt.Errorf("the heap went from %d to %d bytes while a plan sends from it", used, now)
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		if err := errors.Join(p.Wait(ctx), p.Close(ctx), r.Barrier(ctx)); err != nil {
			return err
		}
		if now := r.World().Heap().Used(); now >= used {
			return fmt.Errorf("the heap holds %d bytes after the plan, %d before", now, used)
		}
		return nil
	})
}

// Close waits for a kernel that was launched with the plan's handle.
func TestAPlanKeepsItsMemoryUntilItsKernelsHaveEnded(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, p, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		flag, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		if err := g.script(h, 1, func(prog *kernels.Program) { prog.On(0).Await(flag.Addr(), 1) }); err != nil {
			return err
		}
		soon, cancel := short(ctx)
		err = p.Close(soon)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("got %v, want a Close that waits for the kernel", err)
		}
		if err := state(p, Closing); err != nil {
			return err
		}
		if err := r.Store(flag, 0, 1); err != nil {
			return err
		}
		<-p.Done()
		return state(p, Closed)
	})
}

// Whatever ends a world's ranks, everything drains and every goroutine ends.
func TestEverythingEndsHoweverARankEnds(t *testing.T) {
	boom := errors.New("boom")
	ends := map[string]func(cancel func()) error{
		"an error":  func(func()) error { return boom },
		"a panic":   func(func()) error { panic(boom) },
		"Goexit":    func(func()) error { runtime.Goexit(); return nil },
		"nil":       func(func()) error { return nil },
		"cancelled": func(cancel func()) error { cancel(); return nil },
	}
	for name, end := range ends {
		for _, at := range []string{"New", "Start", "Wait", "NextRound", "Close"} {
			t.Run(name+" before "+at, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				w := world{ranks: 3}
				cfg := w.config(t)
				began := time.Now()
				err := rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
					g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
					if err != nil {
						return err
					}
					// What a kernel still writes is sent as it stands, and the race
					// detector would tell.
					defer r.Sync(context.WithoutCancel(ctx))
					var p *Plan
					var h Handle
					steps := []struct {
						name string
						do   func() error
					}{
						{"New", func() (err error) { p, err = New(ctx, r, g.out, g.mine); return }},
						{"Start", func() (err error) { h, err = p.Start(ctx); return }},
						{"Wait", func() error { return errors.Join(g.produce(p, h), p.Wait(ctx)) }},
						{"NextRound", func() error { return p.NextRound(ctx) }},
						{"Close", func() error { return p.Close(ctx) }},
					}
					for _, s := range steps {
						if s.name == at && r.ID() == 1 {
							return end(cancel)
						}
						if err := s.do(); err != nil {
							return err
						}
					}
					return nil
				})
				if time.Since(began) > patience/2 {
					t.Error("it took the whole deadline")
				}
				if err == nil && !(name == "nil" && at == "Close") {
					t.Error("no rank has an error")
				}
				if (name == "an error" || name == "a panic") && !errors.Is(err, boom) {
					t.Errorf("%v does not wrap the rank's error", err)
				}
				if qs := cfg.Node.Queues(); len(qs) > 0 {
					t.Errorf("%d queues are left", len(qs))
				}
			})
		}
	}
}

// A kernel that never returns is named when the world is closed, in time.
func TestClosingAWorldNamesAKernelThatNeverEnds(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	t.Parallel()
	stop := make(chan struct{})
	defer close(stop)
	deaf := &kernels.Kernel{Name: "deaf", Go: func(*hip.Thread) { <-stop }}
	err := rank.Run(context.Background(), world{ranks: 2, close: 50 * time.Millisecond}.config(t), func(ctx context.Context, r *rank.Rank) error {
		_, _, h, err := started(ctx, r, shape{chunks: 1, rows: 2, cols: 64})
		if err != nil {
			return err
		}
		if r.ID() == 1 {
			return r.Launch(deaf, kernels.Grid(1), h)
		}
		return nil
	})
	if err == nil || !errorHas(err, "deaf") || !errorHas(err, "plan 1") {
		t.Fatalf("got %v, want an error that names the kernel and the plan", err)
	}
}
