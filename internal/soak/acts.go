package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/rank"
)

// act is something that all ranks do, or a fault that they all survive.
type act struct {
	kind    string
	fault   bool
	ranks   int  // at least so many
	open    int  // plans that must be open
	private bool // it concerns queues, so only a world that shares none does it
	seen    bool // packets must be seen, which only the host's engines let be
	do      func(*actor, context.Context) error
}

var acts = []act{
	{kind: "rounds", open: 1, do: (*actor).someRounds},
	{kind: "rounds", open: 1, do: (*actor).someRounds},
	{kind: "rounds", open: 1, do: (*actor).someRounds},
	{kind: "open", do: (*actor).openOne},
	{kind: "close", open: 1, do: (*actor).closeOne},
	{kind: "puts", ranks: 2, private: true, do: (*actor).puts},
}

func init() { acts = append(acts, faults...) }

// act does one that fits. Behind a fault it shows that rounds work.
func (a *actor) act(ctx context.Context) error {
	a.acts++
	t := acts[a.common.IntN(len(acts))]
	if t.ranks > a.v.ranks || t.open > len(a.rigs) || t.private && a.v.temper != alone || t.seen && !a.v.b.soak.sees() {
		t = acts[0]
	}
	if err := a.atLeast(ctx, t.open); err != nil {
		return err
	}
	if err := t.do(a, ctx); err != nil {
		return fmt.Errorf("act %d, %s: %w", a.acts, t.kind, err)
	}
	if !t.fault {
		return nil
	}
	if err := a.atLeast(ctx, 1); err != nil {
		return fmt.Errorf("after act %d, %s: %w", a.acts, t.kind, err)
	}
	if err := a.step(ctx, 1); err != nil {
		return fmt.Errorf("after act %d, %s: %w", a.acts, t.kind, err)
	}
	if a.id == 0 {
		a.v.b.soak.tally.survive(t.kind)
	}
	return nil
}

// latch is one that the venue's ranks share in this act.
func (a *actor) latch() *latch {
	return a.v.b.latch(fmt.Sprint(a.v.name, a.v.runs, ".", a.acts))
}

func (a *actor) someRounds(ctx context.Context) error {
	for range 5 + a.common.IntN(60) {
		if err := a.step(ctx, 1+a.common.IntN(len(a.open))); err != nil {
			return err
		}
	}
	return nil
}

func (a *actor) openOne(ctx context.Context) error {
	if g := a.free(); g != nil {
		return a.make(ctx, g)
	}
	return nil
}

func (a *actor) closeOne(ctx context.Context) error {
	return a.close(ctx, a.open[a.common.IntN(len(a.open))])
}

// send puts a word to a peer, and signals.
func (a *actor) send(ctx context.Context, peer int, word uint64) error {
	if err := heap.Write(a.letter, []uint64{word}); err != nil {
		return err
	}
	me, n := a.id, a.v.ranks
	err := a.r.Put(ctx, peer, a.box.Rows(me, me+1), a.letter, rank.PutOptions{Signal: a.box.Rows(n+me, n+me+1)})
	if err == nil {
		a.sent[peer] += 8
	}
	return err
}

// puts has every rank put words to every other while nothing is prepared.
func (a *actor) puts(ctx context.Context) error {
	if err := a.closeAll(ctx); err != nil {
		return err
	}
	n := uint64(a.v.ranks)
	word := func(from, to, i uint64) uint64 { return uint64(a.acts)<<32 | i<<16 | from<<8 | to }
	seen := make([]uint64, n)
	for peer := range a.v.ranks {
		var err error
		if seen[peer], err = a.r.Load(a.box, a.v.ranks+peer); err != nil {
			return err
		}
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	for i := range uint64(1 + a.common.IntN(4)) {
		for peer := range n {
			if int(peer) == a.id {
				continue
			}
			if err := a.send(ctx, int(peer), word(uint64(a.id), peer, i)); err != nil {
				return err
			}
			if err := a.r.Quiet(ctx, int(peer)); err != nil {
				return err
			}
		}
		for peer := range n {
			if int(peer) == a.id {
				continue
			}
			if err := a.r.Await(ctx, a.box, int(n+peer), seen[peer]+i+1); err != nil {
				return err
			}
			got, err := a.r.Load(a.box, int(peer))
			if err != nil {
				return err
			}
			if want := word(peer, uint64(a.id), i); got != want {
				return fmt.Errorf("rank %d: the word of rank %d is %#x, want %#x", a.id, peer, got, want)
			}
		}
		if err := a.r.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// front is the rig whose plan was prepared first.
func (a *actor) front() *rig { return a.open[0] }

// senders are the ranks that send in every one of the rigs.
func (a *actor) senders(gs ...*rig) (ranks []int) {
	for r := range a.v.ranks {
		if !slices.ContainsFunc(gs, func(g *rig) bool { return !g.sends(r) }) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
