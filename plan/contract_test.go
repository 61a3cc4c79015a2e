package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// The order in which chunks are marked changes when they arrive, never what.
func TestChunksMarkedInAnyOrderArriveWhole(t *testing.T) {
	t.Parallel()
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 6, rows: 2, cols: 33, gap: 5}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		dice := rand.New(rand.NewPCG(5, uint64(r.ID())))
		for range 20 {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			order := dice.Perm(6)
			if r.ID() == 0 {
				order = []int{5, 4, 3, 2, 1, 0}
			}
			if err := errors.Join(g.produce(p, h, order...), p.Wait(ctx), g.check(h.Round()), p.NextRound(ctx)); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// Programs that each take every n-th step in order complete chunk after chunk,
// if each chunk is one step of all of them.
func TestAPersistentProducerCompletesItsChunksInOrder(t *testing.T) {
	t.Parallel()
	hostOnly(t, "kernels that are Go functions")
	const programs, chunks = 6, 8
	// Each program looks, after a mark that completed a chunk, whether every
	// chunk before it is complete.
	producer := &kernels.Kernel{Name: "persistent", Go: func(t *hip.Thread) {
		v := kernels.NewView(t, t.Arg(0))
		gates := v.PeerGates(v.Rank())
		ready := func(c int) bool {
			return t.Word(gates+uint64(c*kernels.GateRow+kernels.GateReady)).Load() >= v.Round()
		}
		for step := t.Block; step < programs*chunks; step += programs {
			chunk := v.First() + step/programs
			v.MarkReady(chunk)
			if !ready(chunk) {
				continue
			}
			for c := v.First(); c < chunk; c++ {
				if !ready(c) {
					t.Fail(fmt.Errorf("chunk %d is complete and chunk %d is not", chunk, c))
				}
			}
		}
	}}
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: chunks, rows: 1, cols: 16, writers: programs}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		for range 10 {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(r.Launch(producer, kernels.Grid(programs), h), p.Wait(ctx), p.NextRound(ctx)); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// Each rank's producer waits for the other's chunks before it marks its own:
// nobody ever goes on, and the error shows who waits.
func TestAProducerThatWaitsBeforeItHasMarkedEverythingIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		over := newGathering(2)
		world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
			g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
			if err != nil {
				return err
			}
			err = g.script(h, 1, func(prog *kernels.Program) {
				l := prog.On(0)
				g.fill(l, 0, 1)
				g.fill(l, 1, 1) // nothing may write once Close sends the chunk as it stands
				l.Mark(p.FirstChunk())
				l.Wait(2*(1-r.ID()) + 1) // the other's second chunk
				l.Mark(p.FirstChunk() + 1)
			})
			if err != nil {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			late, bad := expect[*TimeoutError](p.Wait(soon))
			if err := over.meet(ctx); err != nil { // Close opens gates
				return err
			}
			if bad != nil {
				return bad
			}
			if !slices.Contains(late.Running, "script") {
				return fmt.Errorf("the producer is not named: %v", late)
			}
			for _, want := range []string{"chunk 1 of rank 0: it has 0 of its 1 marks", "chunk 3 of rank 1: it has 0 of its 1 marks"} {
				if !errorHas(late, want) {
					return fmt.Errorf("%q is not in %v", want, late)
				}
			}
			return p.Close(ctx)
		})
	})
}

// A loop that looks for a chunk ends at the same look on every thread of a CTA.
func TestALoopThatCountsItsLooksEndsAlikeOnEveryThread(t *testing.T) {
	t.Parallel()
	hostOnly(t, "kernels that are Go functions")
	const threads = 5
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		own, err := r.NewStream()
		if err != nil {
			return err
		}
		var looks, polls [threads]int
		consumer := &kernels.Kernel{Name: "looks", Go: func(t *hip.Thread) {
			v := kernels.NewView(t, t.Arg(0))
			looks[t.Index] = 0
			for looks[t.Index] < 1<<12 && !v.Arrived(1-v.Rank()) {
				looks[t.Index]++
			}
			polls[t.Index] = v.Wait(1 - v.Rank())
		}}
		for range 20 {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			err = own.Launch(consumer, kernels.Waits(hip.Grid{Blocks: 1, Threads: threads}), h)
			if err := errors.Join(err, g.produce(p, h), p.Wait(ctx)); err != nil {
				return err
			}
			for i := range threads {
				if looks[i] != looks[0] || polls[i] != polls[0] || polls[i] < 1 {
					return fmt.Errorf("threads looked %v times and polled %v times", looks, polls)
				}
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// Rank 1 has handed round 1 back and not started round 2, and rank 0's data of
// round 2 comes all the same.
func TestOnceNextRoundHasReturnedAPeerMayOverwriteTheBuffer(t *testing.T) {
	t.Parallel()
	here := newGathering(2)
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := errors.Join(g.round(ctx, p), p.NextRound(ctx)); err != nil {
			return err
		}
		if r.ID() == 1 {
			for c := range 2 {
				if err := until(ctx, func() (bool, error) { return arrivedBy(p, c, 1, 2) }); err != nil {
					return err
				}
			}
			if wrong, err := g.wrong(0, 2); err != nil || wrong > 0 {
				return errors.Join(err, fmt.Errorf("%d bytes are not those of round 2", wrong))
			}
			if err := state(p, Prepared); err != nil {
				return err
			}
			if err := here.meet(ctx); err != nil {
				return err
			}
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if err := g.produce(p, h); err != nil {
			return err
		}
		if r.ID() == 0 {
			if err := here.meet(ctx); err != nil {
				return err
			}
		}
		return errors.Join(p.Wait(ctx), g.check(2), p.Close(ctx))
	})
}

// The count of marks is right, and the data was written by nobody yet: no count
// can tell. That is why order comes from the kernel's own mapping.
func TestTheMarkCountCannotTellThatAChunkWasMarkedByTheWrongPrograms(t *testing.T) {
	t.Parallel()
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := errors.Join(g.round(ctx, p), p.NextRound(ctx)); err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		err = g.script(h, 1, func(prog *kernels.Program) {
			l := prog.On(0)
			g.fill(l, 0, 2)
			l.Mark(p.FirstChunk() + 1) // whose data is that of round 1
			l.Mark(p.FirstChunk())
		})
		if err := errors.Join(err, p.Wait(ctx)); err != nil {
			return err
		}
		chunk := g.out.Size() / 4
		if wrong, err := g.wrong(1-r.ID(), 2); err != nil || wrong < int(chunk)/2 || wrong > int(chunk) {
			return errors.Join(err, fmt.Errorf("%d bytes are stale, want about the %d of one chunk", wrong, chunk))
		}
		return p.Close(ctx)
	})
}

// A schedule from the kernel's own mapping sends each tile after it is written,
// whatever that mapping is.
func TestAScheduleFromTheKernelsMappingSendsEveryTileWhole(t *testing.T) {
	for _, group := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprintf("%d tile rows together", group), func(t *testing.T) {
			t.Parallel()
			const programs, tilesM, tilesN, tile = 3, 5, 4, 8
			world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
				out, err := r.Zeros(ctx, heap.Uint8, 2*tilesM*tile, tilesN*tile)
				if err != nil {
					return err
				}
				mine := out.Rows(r.ID()*tilesM*tile, (r.ID()+1)*tilesM*tile).Window()
				chunks, err := schedule.TileChunks(mine, schedule.Tile{Rows: tile, Cols: tile}, programs, schedule.Options{
					Order: func(step int) int { return kernels.TileOf(step, tilesM, tilesN, group) },
				})
				if err != nil {
					return err
				}
				p, err := NewAllGather(ctx, r, out, chunks)
				if err != nil {
					return err
				}
				b := make([]byte, out.Size())
				for round := uint64(1); round <= 8; round++ {
					h, err := p.Start(ctx)
					if err != nil {
						return err
					}
					err = r.Launch(kernels.Tiled, kernels.Grid(programs), h, out, mine.Offset, mine.Rows, mine.Cols, mine.Pitch, tile, tile, programs, group, 9)
					if err := errors.Join(err, p.Wait(ctx), out.Read(b)); err != nil {
						return err
					}
					for of := range 2 {
						half := len(b) / 2
						if wrong := kernels.CheckPattern(b[of*half:][:half], kernels.SeedOf(9, of, round), uint64(of*half)); wrong > 0 {
							return fmt.Errorf("round %d: %d bytes of rank %d are wrong", round, wrong, of)
						}
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

// Rank 1 comes a second later, and rank 0's Close takes that second.
func TestCloseWaitsForEveryRank(t *testing.T) {
	hostOnly(t, "time that a test can tell")
	synctest.Test(t, func(t *testing.T) {
		world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
			_, p, _, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
			if err != nil {
				return err
			}
			if r.ID() == 1 {
				<-time.After(time.Second)
			}
			began := time.Now()
			if err := p.Close(ctx); err != nil {
				return err
			}
			if d := time.Since(began); r.ID() != 1 && d != time.Second {
				return fmt.Errorf("Close returned after %v", d)
			}
			return state(p, Closed)
		})
	})
}

// What New cannot send from is a typed error on every rank.
func TestATensorThatThePlanCannotUseIsEveryRanksError(t *testing.T) {
	t.Parallel()
	other, err := rank.Open(context.Background(), world{ranks: 1}.config(t))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	var foreign *heap.Tensor
	err = other.Run(context.Background(), func(ctx context.Context, r *rank.Rank) (err error) {
		foreign, err = r.Zeros(ctx, heap.Uint8, 8, 8)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		out  func(g *rig) *heap.Tensor
		want error
	}{
		"nil":             {func(*rig) *heap.Tensor { return nil }, rank.ErrNoTensor},
		"another world's": {func(*rig) *heap.Tensor { return foreign }, rank.ErrForeign},
		"a wrong slice":   {func(g *rig) *heap.Tensor { return g.out.Rows(3, 99) }, nil},
	} {
		for call, make := range map[string]func(context.Context, *rank.Rank, *heap.Tensor, schedule.Schedule) (*Plan, error){"New": New, "NewAllGather": NewAllGather} {
			t.Run(name+" in "+call, func(t *testing.T) {
				mistake(t, 2, func(ctx context.Context, g *rig) error {
					out := g.out
					if g.ID() == 1 {
						out = c.out(g)
					}
					_, err := make(ctx, g.Rank, out, g.mine)
					return err
				}, func(r *rank.Rank, err error) error {
					e, bad := expect[*rank.TensorError](err)
					if bad == nil && (e.Rank != 1 || c.want != nil && !errors.Is(err, c.want)) {
						bad = fmt.Errorf("the error is wrong: %v", err)
					}
					return bad
				})
			})
		}
	}
}
