package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// until gives way until something holds.
func until(ctx context.Context, holds func() (bool, error)) error {
	for {
		done, err := holds()
		if done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		runtime.Gosched()
	}
}

// arrivedBy says whether a round of chunk c has arrived at a rank.
func arrivedBy(p *Plan, c, at int, round uint64) (bool, error) {
	t := p.shared.tables[at].viewed()
	err := t.look()
	return reached(t.load(c, kernels.GateArrival), round), err
}

// A gate row is 64 bytes: ready, arrival and the count of marks, then zeros.
// Rounds start at 1 and grow by 1, and so do the gates, which are never reset.
func TestGateRowsGrowByOneRoundAtATimeAndAreNeverReset(t *testing.T) {
	t.Parallel()
	if kernels.GateRow != 64 {
		t.Fatalf("a gate row has %d bytes", kernels.GateRow)
	}
	const writers = 3
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64, writers: writers}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		table := p.shared.tables[r.ID()]
		rows := make([]uint64, p.Chunks()*kernels.GateRow/8)
		look := func(done uint64) error {
			if err := table.mem.LoadWords(table.base, 8, rows); err != nil {
				return err
			}
			for c := range p.Chunks() {
				want := [8]uint64{0, done, 0}
				if own := c >= p.FirstChunk() && c < p.FirstChunk()+2; own {
					want = [8]uint64{done, 0, done * writers}
				}
				if got := [8]uint64(rows[8*c:]); got != want {
					return fmt.Errorf("after round %d rank %d has the row %v for chunk %d, want %v", done, r.ID(), got, c, want)
				}
			}
			return nil
		}
		if err := errors.Join(look(0), r.Barrier(ctx)); err != nil { // nobody begins before all have looked
			return err
		}
		for round := uint64(1); round <= 10; round++ {
			if p.Round() != round {
				return fmt.Errorf("the plan is at round %d, want %d", p.Round(), round)
			}
			if err := errors.Join(g.round(ctx, p), look(round), r.Barrier(ctx), p.NextRound(ctx)); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
}

// Engines wait at the low half of ready until it is at least the round, and end
// each chunk with one arrival at the peer.
func TestEnginesPollReadyAndEndEachChunkWithItsArrival(t *testing.T) {
	t.Parallel()
	hostOnly(t, "packets that a test can see")
	var mu sync.Mutex
	seen := map[string][]sdma.Packet{}
	cfg := rank.NodeConfig{Intercept: func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		mu.Lock()
		defer mu.Unlock()
		pair := fmt.Sprintf("%d→%d", from.Device, to.Device)
		if p.Op != sdma.OpNOP && p.Op != sdma.OpFence {
			seen[pair] = append(seen[pair], *p)
		}
		return nil
	}}
	const chunks, rounds = 2, 3
	world{ranks: 2, cfg: cfg}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: chunks, rows: 2, cols: 60, gap: 4}, 7)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := errors.Join(g.rounds(ctx, p, rounds), r.Barrier(ctx)); err != nil {
			return err
		}
		mine, theirs := p.shared.tables[r.ID()], p.shared.tables[1-r.ID()]
		mu.Lock()
		packets := seen[fmt.Sprintf("%d→%d", r.ID(), 1-r.ID())]
		mu.Unlock()
		for round := uint32(1); round <= rounds; round++ {
			for c := range chunks {
				if len(packets) < 3 {
					return fmt.Errorf("round %d ends before chunk %d", round, c)
				}
				poll, copied, signal := packets[0], packets[1], packets[2]
				packets = packets[3:]
				ready, arrival := mine.addr(mine.gate(p.FirstChunk()+c, kernels.GateReady)), theirs.addr(theirs.gate(p.FirstChunk()+c, kernels.GateArrival))
				if w := poll.Poll; poll.Op != sdma.OpPoll || w.Addr != ready || w.Ref != round || w.Func != sdma.GreaterEqual || w.Mask != 1<<32-1 || w.Retries != sdma.RetryForever {
					return fmt.Errorf("round %d, chunk %d begins with %v", round, c, &poll)
				}
				if copied.Op != sdma.OpCopyWindow || copied.Copy.Width != 60 || copied.Copy.Height != 2 {
					return fmt.Errorf("round %d, chunk %d goes on with %v", round, c, &copied)
				}
				if a := signal.Atomic; signal.Op != sdma.OpAtomic || a.Addr != arrival || a.Operand != 1 {
					return fmt.Errorf("round %d, chunk %d ends with %v", round, c, &signal)
				}
			}
		}
		if len(packets) > 0 {
			return fmt.Errorf("%d packets too many", len(packets))
		}
		return p.Close(ctx)
	})
}

// Only what rank 0 sends to rank 2 is held up. So rank 1, whose own chunks are
// everywhere and which has all others', is done; the two are not.
func TestWaitReturnsWhenOwnChunksAreEverywhereAndAllOthersAreHere(t *testing.T) {
	hostOnly(t, "engines that a test can stop")
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cfg := rank.NodeConfig{Intercept: func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
			if from.Device == 0 && to.Device == 2 && p.Op == sdma.OpAtomic {
				<-release // the bytes are there, the arrival is not
			}
			return nil
		}}
		var mu sync.Mutex
		done := map[int]bool{}
		all := newGathering(3)
		world{ranks: 3, cfg: cfg}.run(t, func(ctx context.Context, r *rank.Rank) error {
			g, p, h, err := started(ctx, r, shape{chunks: 2, rows: 2, cols: 64})
			if err != nil {
				return err
			}
			if err := g.produce(p, h); err != nil {
				return err
			}
			if r.ID() == 1 {
				if err := p.Wait(ctx); err != nil {
					return err
				}
				synctest.Wait()
				mu.Lock()
				early := done[0] || done[2]
				mu.Unlock()
				close(release)
				if early {
					return errors.New("a Wait returned before the last arrival")
				}
			} else {
				if err := p.Wait(ctx); err != nil {
					return err
				}
				mu.Lock()
				done[r.ID()] = true
				mu.Unlock()
			}
			return errors.Join(all.meet(ctx), g.check(1), p.Close(ctx))
		})
	})
}
