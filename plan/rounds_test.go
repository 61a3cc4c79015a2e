package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

func TestEveryByteArrivesInEveryRound(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 8} {
		for _, s := range []shape{{chunks: 1, rows: 1, cols: 1}, {chunks: 3, rows: 2, cols: 100}, {chunks: 4, rows: 3, cols: 33, gap: 15, writers: 2}} {
			t.Run(fmt.Sprintf("%d ranks, %+v", ranks, s), func(t *testing.T) {
				t.Parallel()
				world{ranks: ranks}.run(t, func(ctx context.Context, r *rank.Rank) error {
					g, err := newRig(ctx, r, s, 7)
					if err != nil {
						return err
					}
					p, err := New(ctx, r, g.out, g.mine)
					if err != nil {
						return err
					}
					if err := g.rounds(ctx, p, 12); err != nil {
						return err
					}
					return p.Close(ctx)
				})
			})
		}
	}
}

// A ring of 4 KiB holds a few of these rounds, so it wraps many times.
func TestRoundsGoOnPastTheRingsEnd(t *testing.T) {
	t.Parallel()
	world{ranks: 2, cfg: rank.NodeConfig{RingBytes: 4096}}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 5, rows: 2, cols: 9, gap: 7}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := g.rounds(ctx, p, 400); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

func TestRanksThatSendNothingPassEmptySchedules(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64, silent: r.ID() != 1}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := g.rounds(ctx, p, 5, 0, 2); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

// Chunk 1 is marked before chunk 0. It does not arrive before chunk 0 is
// marked, and then both do.
func TestAChunkMarkedEarlyWaitsForTheOneBeforeItAndArrivesRightAfter(t *testing.T) {
	t.Parallel()
	early, looked := newGathering(2), newGathering(2)
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 3, rows: 2, cols: 64, silent: r.ID() == 1}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if err := g.produce(p, h, 1); err != nil {
			return err
		}
		if err := r.Sync(ctx); err != nil {
			return err
		}
		if err := early.meet(ctx); err != nil {
			return err
		}
		for c := range 2 {
			if here, err := arrived(p, c, 1); err != nil || here {
				return errors.Join(err, fmt.Errorf("chunk %d arrived before chunk 0 was marked", c))
			}
		}
		if err := looked.meet(ctx); err != nil {
			return err
		}
		if err := g.produce(p, h, 0); err != nil {
			return err
		}
		// Chunk 2 is never marked, and the others do not wait for it.
		for c := range 2 {
			for {
				here, err := arrived(p, c, 1)
				if err != nil || ctx.Err() != nil {
					return errors.Join(err, context.Cause(ctx))
				}
				if here {
					break
				}
				runtime.Gosched()
			}
		}
		return p.Close(ctx)
	})
}

// arrived says whether chunk c of round 1 is at a rank.
func arrived(p *Plan, c, at int) (bool, error) {
	t := p.shared.tables[at].viewed()
	err := t.look()
	return reached(t.load(c, kernels.GateArrival), 1), err
}

// Each CTA of four threads writes a part of the chunk and marks it; the gate
// opens with the last.
func TestTheLastWriterOpensTheGateWithAllTheData(t *testing.T) {
	t.Parallel()
	const writers = 8
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, 2*writers*4, 48)
		if err != nil {
			return err
		}
		mine := out.Rows(r.ID()*writers*4, (r.ID()+1)*writers*4)
		chunks, err := schedule.Whole(mine.Window(), writers, schedule.Options{})
		if err != nil {
			return err
		}
		p, err := New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		bytes := make([]byte, out.Size())
		for round := uint64(1); round <= 20; round++ {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			w := mine.Window()
			grid := hip.Grid{Blocks: writers, Threads: 4}
			err = r.Launch(kernels.Fill, grid, h, out, w.Offset, w.Cols, w.Rows, w.Pitch, 3, p.FirstChunk())
			if err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			if err := out.Read(bytes); err != nil {
				return err
			}
			for of := range 2 {
				half := bytes[of*len(bytes)/2 : (of+1)*len(bytes)/2]
				if wrong := kernels.CheckPattern(half, kernels.SeedOf(3, of, round), uint64(of*len(bytes)/2)); wrong > 0 {
					return fmt.Errorf("rank %d, round %d: %d bytes of rank %d are wrong", r.ID(), round, wrong, of)
				}
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// A rank that is slow at any step of its round never reads another round's
// bytes, and never has its own overwritten by them.
func TestNextRoundHandsTheBufferBack(t *testing.T) {
	for _, step := range []string{"start", "produce", "wait", "read", "next"} {
		t.Run("slow at "+step, func(t *testing.T) {
			t.Parallel()
			world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 2, rows: 4, cols: 100}, 7)
				if err != nil {
					return err
				}
				p, err := New(ctx, r, g.out, g.mine)
				if err != nil {
					return err
				}
				slow := func(at string) error {
					if at != step || int(p.Round())%3 != r.ID() {
						return nil
					}
					// A kernel that takes its time stands for whatever a rank does
					// meanwhile; nothing depends on how long it takes.
					if err := g.script(Handle{}, 1, func(prog *kernels.Program) { prog.On(0).Delay(2e6) }); err != nil {
						return err
					}
					if at == "produce" {
						return nil
					}
					return r.Sync(ctx)
				}
				for range 12 {
					if err := slow("start"); err != nil {
						return err
					}
					h, err := p.Start(ctx)
					if err != nil {
						return err
					}
					if err := slow("produce"); err != nil {
						return err
					}
					if err := g.produce(p, h); err != nil {
						return err
					}
					if err := slow("wait"); err != nil {
						return err
					}
					if err := p.Wait(ctx); err != nil {
						return err
					}
					if err := slow("read"); err != nil {
						return err
					}
					if err := g.check(h.Round()); err != nil {
						return err
					}
					if err := slow("next"); err != nil {
						return err
					}
					if err := p.NextRound(ctx); err != nil {
						return err
					}
				}
				return p.Close(ctx)
			})
		})
	}
}

// Work queued before NextRound is covered by it: a consumer that is still
// reading when NextRound is called reads its own round.
func TestNextRoundWaitsForWhatTheRankHasLaunched(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 4, cols: 64}, 7)
		if err != nil {
			return err
		}
		found, err := r.Zeros(ctx, heap.Uint64, 8)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		other, err := g.chunks(1 - r.ID())
		if err != nil {
			return err
		}
		for round := uint64(1); round <= 10; round++ {
			if err := g.round(ctx, p); err != nil {
				return err
			}
			err := g.script(Handle{}, 1, func(prog *kernels.Program) {
				prog.On(0).Delay(1e6).Check(g.buffer(), kernels.Region(other[0].Regions[0]), kernels.SeedOf(7, 1-r.ID(), round), found.Addr())
			})
			if err != nil {
				return err
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		words := make([]uint64, 8)
		if err := heap.Read(found, words); err != nil {
			return err
		}
		if words[0] != 0 || words[2] != 10 {
			return fmt.Errorf("%d wrong bytes in %d checks, want 0 in 10", words[0], words[2])
		}
		return p.Close(ctx)
	})
}

// Gates are compared by 32 bits, without a sign.
func TestRoundsGoUpToTheLastOneAndNoFurther(t *testing.T) {
	for _, first := range []uint64{1<<31 - 2, maxRound - 4} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
				g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 40, writers: 3}, 7)
				if err != nil {
					return err
				}
				p, err := newAt(ctx, r, g.out, g.mine, first)
				if err != nil {
					return err
				}
				if err := g.rounds(ctx, p, 5); err != nil {
					return err
				}
				err = p.NextRound(ctx)
				if first+4 < maxRound {
					if err != nil {
						return err
					}
					return p.Close(ctx)
				}
				if _, err := expect[*RoundsError](err); err != nil {
					return err
				}
				if err := state(p, Done); err != nil {
					return err
				}
				return p.Close(ctx)
			})
		})
	}
}

// Region sizes are fixed when the plan is made: what the caller does to its
// schedule afterwards changes nothing.
func TestRegionsAreFixedWhenThePlanIsMade(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		given, err := g.chunks(r.ID())
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, given)
		if err != nil {
			return err
		}
		for i := range given {
			given[i].Writers = 99
			given[i].Regions[0] = schedule.Region{Offset: 1, Width: 1, Height: 1}
		}
		if err := g.rounds(ctx, p, 3); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

// A producer that has marked everything may wait for the others' arrivals.
func TestAProducerMayWaitForArrivalsOnceItHasMarkedEverything(t *testing.T) {
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
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		err = g.script(h, 1, func(prog *kernels.Program) {
			l := prog.On(0)
			for c := range g.mine {
				g.fill(l, c, 1)
				l.Mark(p.FirstChunk() + c)
			}
			for c := range p.Chunks() {
				l.Wait(c)
			}
		})
		if err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		if err := g.check(1); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}
