package plan

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/rank"
)

var errInjected = errors.New("injected")

// failing is a node on which a step fails on a rank while it is armed.
type failing struct {
	step  inject.Step
	rank  int
	armed atomic.Bool
	after atomic.Int64 // how often the step succeeds first
}

func (f *failing) inject(step inject.Step, rank int) error {
	if f.armed.Load() && step == f.step && rank == f.rank && f.after.Add(-1) < 0 {
		return fmt.Errorf("%w at %s", errInjected, step)
	}
	return nil
}

// trace is what a world must be in as before after a preparation that failed.
func trace(r *rank.Rank) string {
	s := fmt.Sprintf("heap %d;", r.World().Heap().Used())
	for _, q := range r.World().Node().Queues() {
		snap := q.Snapshot()
		s += fmt.Sprintf(" %s holds %d of %d plans;", snap.Queue, snap.Held, len(snap.Holders))
	}
	return s
}

// wantVote says that err names the rank that failed and wraps what it met.
func wantVote(err error, rankID int, anyRank bool) error {
	if !errors.Is(err, errInjected) {
		return fmt.Errorf("got %v, want the injected error", err)
	}
	if anyRank {
		return nil
	}
	v, bad := expect[*rank.VoteError](err)
	if bad != nil {
		return bad
	}
	if v.Rank != rankID {
		return fmt.Errorf("the error names rank %d, not %d: %v", v.Rank, rankID, err)
	}
	return nil
}

func TestNewPreparesOnEveryRankOrOnNone(t *testing.T) {
	steps := []inject.Step{inject.Validate, inject.Gates, inject.Encode, inject.Reserve}
	for _, step := range steps {
		for bad := range 3 {
			if step == inject.Gates && bad > 0 {
				continue // once for all ranks
			}
			t.Run(fmt.Sprintf("%s fails on rank %d", step, bad), func(t *testing.T) {
				t.Parallel()
				f := &failing{step: step, rank: bad}
				world{ranks: 3, cfg: rank.NodeConfig{Inject: f.inject}}.run(t, func(ctx context.Context, r *rank.Rank) error {
					g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
					if err != nil {
						return err
					}
					before := trace(r)
					if err := r.Barrier(ctx); err != nil {
						return err
					}
					f.armed.Store(true)
					_, err = New(ctx, r, g.out, g.mine)
					if err := wantVote(err, bad, step == inject.Gates); err != nil {
						return err
					}
					if err := r.Barrier(ctx); err != nil {
						return err
					}
					if after := trace(r); after != before {
						return fmt.Errorf("before: %s\nafter: %s", before, after)
					}
					if n := len(r.World().Tenants()); n > 0 {
						return fmt.Errorf("%d plans are left", n)
					}
					f.armed.Store(false)
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
			})
		}
	}
}

func TestNextRoundThatFailsBeforeRingingLeavesDoneAndCanBeTriedAgain(t *testing.T) {
	for bad := range 3 {
		t.Run(fmt.Sprintf("on rank %d", bad), func(t *testing.T) {
			t.Parallel()
			f := &failing{step: inject.Reserve, rank: bad}
			world{ranks: 3, cfg: rank.NodeConfig{Inject: f.inject}}.run(t, func(ctx context.Context, r *rank.Rank) error {
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
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				before := trace(r)
				f.armed.Store(true)
				for range 3 {
					if err := wantVote(p.NextRound(ctx), bad, false); err != nil {
						return err
					}
					if err := state(p, Done); err != nil {
						return err
					}
				}
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				if after := trace(r); after != before {
					return fmt.Errorf("before: %s\nafter: %s", before, after)
				}
				f.armed.Store(false)
				if err := r.Barrier(ctx); err != nil {
					return err
				}
				if err := p.NextRound(ctx); err != nil {
					return err
				}
				if err := g.rounds(ctx, p, 3); err != nil {
					return err
				}
				return p.Close(ctx)
			})
		})
	}
}

// A failure among the doorbells cannot be taken back: what was rung is
// flushed, the plan is FAILED, and closing it drains.
func TestAFailureWhileRingingFlushesWhatWasRung(t *testing.T) {
	for _, op := range []string{"New", "NextRound"} {
		for bad := range 3 {
			t.Run(fmt.Sprintf("%s, rank %d", op, bad), func(t *testing.T) {
				t.Parallel()
				f := &failing{step: inject.Ring, rank: bad}
				f.after.Store(1) // its first doorbell is rung, its second not
				world{ranks: 3, cfg: rank.NodeConfig{Inject: f.inject}}.run(t, func(ctx context.Context, r *rank.Rank) error {
					g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
					if err != nil {
						return err
					}
					before := trace(r)
					if err := r.Barrier(ctx); err != nil {
						return err
					}
					if op == "New" {
						f.armed.Store(true)
						_, err := New(ctx, r, g.out, g.mine)
						if err := wantVote(err, bad, false); err != nil {
							return err
						}
						if _, err := expect[*copyengine.RingError](err); err != nil {
							return err
						}
						for _, t := range r.World().Tenants() {
							<-t.Done() // it is CLOSING with the world, and drains by itself
						}
					} else {
						p, err := New(ctx, r, g.out, g.mine)
						if err != nil {
							return err
						}
						if err := g.round(ctx, p); err != nil {
							return err
						}
						f.armed.Store(true)
						if err := wantVote(p.NextRound(ctx), bad, false); err != nil {
							return err
						}
						if err := state(p, Failed); err != nil {
							return err
						}
						if _, err := expect[*StateError](p.NextRound(ctx)); err != nil {
							return err
						}
						if err := p.Close(ctx); err != nil {
							return err
						}
						if err := state(p, Closed); err != nil {
							return err
						}
					}
					if err := r.Barrier(ctx); err != nil {
						return err
					}
					f.armed.Store(false)
					if after := trace(r); after != before {
						return fmt.Errorf("before: %s\nafter: %s", before, after)
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
			})
		}
	}
}

// Half of the ring, to the byte.
func TestPreparedCopiesHoldAtMostHalfOfEachQueue(t *testing.T) {
	only(t, "rings between all ranks", "host", "amd")
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 64, rows: 1, cols: 8}, 7)
		if err != nil {
			return err
		}
		limits := r.Queue((r.ID() + 1) % 3).Limits()
		plans, used := []*Plan{}, int64(0)
		for _, n := range []int{40, 20} { // two plans share the half
			p, err := New(ctx, r, g.out, g.mine[:n])
			if err != nil {
				return err
			}
			plans = append(plans, p)
			used += p.programs[0].Cost()
		}
		// The rest is one chunk of as many one-byte regions as fit, and more.
		fit := func(extra int) error {
			rest := limits.Prepared - used
			one, err := r.Queue((r.ID() + 1) % 3).Compile(copyengine.Chain{{Gate: 8, Signal: 8, Copies: make([]copyengine.Copy, 0)}})
			if err != nil {
				return err
			}
			each, err := r.Queue((r.ID() + 1) % 3).Compile(copyengine.Chain{{Copies: []copyengine.Copy{{Width: 1, Height: 1, SrcPitch: 1, DstPitch: 1}}}})
			if err != nil {
				return err
			}
			n := int((rest - one.Cost()) / each.Cost())
			c := g.mine[63]
			c.Regions = nil
			for range n + extra {
				c.Regions = append(c.Regions, g.mine[63].Regions...)
			}
			before := trace(r)
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			p, err := New(ctx, r, g.out, append(g.mine[:0:0], c))
			if extra == 0 {
				if err != nil {
					return err
				}
				plans = append(plans, p)
				return nil
			}
			full, bad := expect[*copyengine.CapacityError](err)
			if bad != nil {
				return bad
			}
			want := one.Cost() + int64(n+extra)*each.Cost()
			if full.Want != want || full.Held != used || full.Limit != limits.Prepared || len(full.Holders) != 2 || full.Holders[0].Plan != plans[0].String() {
				return fmt.Errorf("the error's figures are wrong: %+v, want %d, held %d", full, want, used)
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			if after := trace(r); after != before {
				return fmt.Errorf("before: %s\nafter: %s", before, after)
			}
			return nil
		}
		if err := fit(1); err != nil {
			return err
		}
		if err := fit(0); err != nil {
			return err
		}
		for _, p := range plans {
			if err := p.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// A plan of exactly half of the ring, prepared behind puts that are on their
// way and across the ring's end, is never held up.
func TestPaddingAndEarlierPutsNeverMakeAPreparationWait(t *testing.T) {
	t.Parallel()
	world{ranks: 2, cfg: rank.NodeConfig{RingBytes: 4096}}.run(t, func(ctx context.Context, r *rank.Rank) error {
		// 2048 bytes: 24 + 32 for the chunk, 1992 for copies: 24 windows of 80
		// and 2 linear ones of 28 make 1976.
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 1, cols: 64}, 7)
		if err != nil {
			return err
		}
		reg := g.mine[0].Regions[0]
		c := g.mine[0]
		for range 24 {
			w := reg
			w.Offset, w.Width, w.Height, w.Pitch = reg.Offset, 2, 2, 3
			c.Regions = append(c.Regions, w)
		}
		c.Regions = append(c.Regions, reg)
		p, err := New(ctx, r, g.out, append(g.mine[:0:0], c))
		if err != nil {
			return err
		}
		if err := g.round(ctx, p); err != nil {
			return err
		}
		from, err := r.Zeros(ctx, heap.Uint64, 8)
		if err != nil {
			return err
		}
		to, err := r.Zeros(ctx, heap.Uint64, 8)
		if err != nil {
			return err
		}
		other := 1 - r.ID()
		for i := range 60 {
			for range i % 7 {
				if err := r.Put(ctx, other, to, from, rank.PutOptions{}); err != nil {
					return err
				}
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
			if err := g.round(ctx, p); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}
