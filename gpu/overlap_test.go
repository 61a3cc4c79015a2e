//go:build cgo && linux

package gpu

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// The producer of the overlap figures: in each chunk every CTA is busy for a
// while, writes its share, and marks the chunk.
const (
	overlapChunks = 64
	overlapChunk  = 8 << 20
	overlapCTAs   = 64
	overlapShare  = overlapChunk / overlapCTAs
)

// producer is its script for a round, for a buffer at an address.
func producer(buffer uint64, busy time.Duration, seed uint64) []uint64 {
	p := kernels.NewProgram(overlapCTAs)
	for cta := range overlapCTAs {
		for c := range overlapChunks {
			at := int64(c*overlapChunk + cta*overlapShare)
			p.On(cta).Delay(busy).Fill(buffer, kernels.Region{Offset: at, Width: overlapShare, Height: 1, Pitch: overlapShare}, seed).Mark(c)
		}
	}
	return p.Words()
}

// handle is one that a plan of two ranks would have on rank 0, with all chunks
// its own, for chains made by hand. writers are the marks that complete each.
func handle(l *lane, round uint64, off int64, writers []int) hip.Arg {
	tables := kernels.HandleWords(len(writers))
	words := make([]uint64, tables+16)
	at := l.src.Addr() + uint64(off)
	words[kernels.HandleVersion] = kernels.ABIVersion
	words[kernels.HandleChunks], words[kernels.HandleOwn] = uint64(len(writers)), uint64(len(writers))
	words[kernels.HandleRound], words[kernels.HandleWorld] = round, 2
	words[kernels.HandleGates] = l.gate(0)
	words[kernels.HandleTables] = at + 8*uint64(tables)
	words[kernels.HandleFaults] = at + 8*uint64(tables+8)
	words[tables], words[tables+1] = l.gate(0), l.signal(0)
	for c, n := range writers {
		words[kernels.HandleChunkWords+2*c] = uint64(n)
	}
	l.check(l.src.StoreWords(off, 8, words))
	// Marks are counted over all rounds.
	counts := make([]uint64, len(writers))
	for c, n := range writers {
		counts[c] = (round - 1) * uint64(n)
	}
	l.check(l.src.StoreWords(l.bytes+kernels.GateWriters, wordBytes, counts))
	return hip.U64(at)
}

// byHand is the hand-written side: its compute time, its copy time, and the two
// together.
type byHand struct {
	*lane
	at int64 // of handle and script behind the gates
}

func newByHand(t *testing.T) *byHand {
	const bytes = overlapChunks * overlapChunk
	l := newLane(t, bytes, overlapChunks)
	return &byHand{lane: l, at: l.src.Size() - 64<<20}
}

// run makes a round: with the producer, the copies, or both.
func (b *byHand) run(busy time.Duration, compute, copies bool) time.Duration {
	l := b.lane
	var moves [][]move
	for c := range overlapChunks {
		moves = append(moves, []move{{int64(c) * overlapChunk, overlapChunk, 1, overlapChunk}})
	}
	l.round++
	script := b.at + 1<<20
	l.check(l.src.StoreWords(script, 8, producer(l.src.Addr(), busy, kernels.SeedOf(3, 0, l.round))))
	h := handle(l, l.round, b.at, slices.Repeat([]int{overlapCTAs}, overlapChunks))
	_, hand := l.chains(moves)
	if copies {
		l.round--
		l.submit(nil, hand)
	}
	start := time.Now()
	if compute {
		l.check(l.stream.Launch(hip.Launch{
			Func: l.builtin["script"], Grid: hip.Grid{Blocks: overlapCTAs},
			Args: []hip.Arg{h, hip.U64(l.src.Addr() + uint64(script))},
		}))
	} else {
		l.open(overlapChunks)
	}
	for copies && l.arrived(overlapChunks-1).Load() < l.round {
	}
	for compute && !l.stream.Idle() {
	}
	d := time.Since(start)
	if !copies {
		return d
	}
	l.drain(overlapChunks)
	if compute {
		if n := kernels.CheckPattern(l.dst.Bytes(0, l.bytes), kernels.SeedOf(3, 0, l.round), 0); n > 0 {
			l.tb.Fatalf("by hand: %d bytes are wrong", n)
		}
	}
	return d
}

// A producer and its copies to a host-placed rank, through a plan and through a
// chain by hand with the same chunks.
func TestFigureOverlap(t *testing.T) {
	figuresOn(t)
	const reps = 7
	b := newByHand(t)
	many := func(f func() time.Duration) time.Duration {
		var ds []time.Duration
		for range reps {
			ds = append(ds, f())
		}
		return median(ds)
	}
	copies := many(func() time.Duration { return b.run(0, false, true) })
	none := many(func() time.Duration { return b.run(0, true, false) })
	t.Logf("copies of %d chunks of %d MiB: %v; producer that only writes: %v", overlapChunks, overlapChunk>>20, copies, none)
	for _, ratio := range []float64{0.5, 1, 2} {
		busy := time.Duration(max(0, ratio*float64(copies)-float64(none)) / overlapChunks)
		compute := many(func() time.Duration { return b.run(busy, true, false) })
		hand := many(func() time.Duration { return b.run(busy, true, true) })
		ours := throughAPlan(t, busy, reps)
		serial := compute + copies
		ideal := serial - max(compute, copies)
		saved := func(d time.Duration) float64 { return float64(serial-d) / float64(ideal) }
		t.Logf("compute : copy = %.2f: compute %v, copies %v, one after the other %v; triggered by a plan %v (%.3f of the ideal saving), by hand %v (%.3f): %.3f",
			float64(compute)/float64(copies), compute, copies, serial, ours, saved(ours), hand, saved(hand), saved(ours)/saved(hand))
		if saved(ours) < 0.97*saved(hand) {
			t.Errorf("the plan realises less than 0.97 of what the chain by hand does")
		}
	}
}

// throughAPlan is the median time from the launch to the end of Wait.
func throughAPlan(t *testing.T, busy time.Duration, reps int) time.Duration {
	cfg := config(t, 2)
	cfg.HeapBytes = overlapChunks*overlapChunk + 32<<20
	var took []time.Duration
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, overlapChunks, overlapChunk)
		if err != nil {
			return err
		}
		script, err := r.Zeros(ctx, heap.Uint64, len(producer(0, 0, 0)))
		if err != nil {
			return err
		}
		var chunks schedule.Schedule
		if r.ID() == 0 {
			if chunks, err = schedule.Chunks(out.Window(), 1, schedule.Options{Writers: overlapCTAs}); err != nil {
				return err
			}
		}
		p, err := plan.New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		for i := range reps {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				if err := heap.Write(script, producer(out.Addr(), busy, kernels.SeedOf(3, 0, h.Round()))); err != nil {
					return err
				}
				start := time.Now()
				if err := r.Launch(kernels.Script, hip.Grid{Blocks: overlapCTAs}, h, script); err != nil {
					return err
				}
				if err := p.Wait(ctx); err != nil {
					return err
				}
				took = append(took, time.Since(start))
			} else {
				if err := p.Wait(ctx); err != nil {
					return err
				}
				here, err := out.Bytes()
				if err != nil {
					return err
				}
				if n := kernels.CheckPattern(here, kernels.SeedOf(3, 0, h.Round()), 0); n > 0 {
					t.Errorf("round %d: %d bytes are wrong", h.Round(), n)
				}
			}
			if i < reps-1 {
				if err := p.NextRound(ctx); err != nil {
					return err
				}
			}
		}
		return p.Close(ctx)
	})
	return median(took)
}
