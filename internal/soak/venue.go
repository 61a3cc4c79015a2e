package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/timeline"
)

// temper is what may happen in a world.
type temper int

const (
	alone  temper = iota // anything
	steady               // nothing that others over the same queues could notice
	mortal               // the same, until a rank dies
)

// venue is a world of a bout.
type venue struct {
	b      *bout
	name   string // tells the worlds of a bout apart
	temper temper
	seed   uint64 // of what its ranks draw
	ranks  int
	shapes []shape
	last   *ending // how its ranks end, nil if well
	runs   int
	world  *rank.World
	actors []*actor
}

func newVenue(b *bout, name string, t temper) *venue {
	v := &venue{b: b, name: name, temper: t, seed: b.rnd.Uint64(), ranks: pick(b.rnd, 1, 2, 2, 3, 3, 4, 5)}
	if t != alone {
		v.ranks = 2 + b.rnd.IntN(3)
	}
	for range 1 + b.rnd.IntN(3) {
		v.shapes = append(v.shapes, drawShape(b.rnd, v.ranks))
	}
	switch {
	case t == mortal:
		v.last = &killed
	case t == alone && oneIn(b.rnd, 2):
		v.last = endings[b.rnd.IntN(len(endings))]
		if v.last.breaks && !b.soak.sees() { // its kernel is a Go function
			v.last = &killed
		}
	}
	return v
}

// heapBytes is room for what the ranks of two runs allocate, and for gates.
func (v *venue) heapBytes() int64 {
	n := int64(1 << 20)
	for _, s := range v.shapes {
		n += 2 * (s.bytes(v.ranks) + 4*programWords*8)
	}
	return n
}

// run opens the world, has its ranks act, and closes it.
func (v *venue) run(ctx context.Context) error {
	cfg := rank.Config{Ranks: v.ranks, HeapBytes: v.heapBytes(), Platform: v.b.soak.platform, Node: v.b.node}
	if v.seed%8 == 0 {
		cfg.Timeline = &timeline.Recorder{Limit: 64}
	}
	var err error
	if v.world, err = rank.Open(ctx, cfg); err != nil {
		return err
	}
	v.b.soak.tally.worlds.Add(1)
	done := make(chan struct{})
	watched := make(chan struct{})
	go v.watch(done, watched)
	err = v.act(ctx, v.last)
	if err == nil && v.last != nil && !v.last.breaks {
		err = v.act(ctx, nil) // the same world works again
	}
	close(done)
	<-watched
	closed := v.world.Close(context.WithoutCancel(ctx))
	if v.last != nil && v.last.breaks {
		closed = nil // the kernels' failures, again
	}
	if err = errors.Join(err, closed); err != nil {
		return fmt.Errorf("%d ranks, %v: %w", v.ranks, v.shapes, err)
	}
	return v.account()
}

// act is one Run of the world's ranks.
func (v *venue) act(ctx context.Context, last *ending) error {
	v.runs++
	v.actors = nil
	for r := range v.ranks {
		v.actors = append(v.actors, newActor(v, r, last))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := v.world.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
		a := v.actors[r.ID()]
		a.r, a.cancel = r, cancel
		a.err = errDied // unless the body returns
		a.err = a.body(ctx)
		return a.err
	})
	if last == nil {
		return err
	}
	return last.survived(v, err)
}

// watch looks at the world while it runs, as metrics do.
func (v *venue) watch(done <-chan struct{}, watched chan<- struct{}) {
	defer close(watched)
	if v.seed%3 > 0 {
		return
	}
	rnd := rand.New(rand.NewPCG(v.seed, 1))
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(rnd.IntN(5)) * time.Millisecond):
		}
		plan.Observe(v.world)
		for _, q := range v.world.Queues() {
			q.Snapshot()
		}
	}
}

// account compares what the world says of itself with what its ranks did.
func (v *venue) account() error {
	o := plan.Observe(v.world)
	if n := len(o.Plans); n > 0 {
		return fmt.Errorf("%d plans are left in a closed world", n)
	}
	if n := v.world.Heap().Used(); n != 0 {
		return fmt.Errorf("the closed world's heap holds %d bytes", n)
	}
	if v.runs > 1 || v.last != nil { // a rank that dies does not know what its last call did
		return nil
	}
	for r, got := range o.Ranks {
		if want := v.actors[r].totals; got != want {
			return fmt.Errorf("rank %d counts %+v, want %+v", r, got, want)
		}
	}
	return nil
}
