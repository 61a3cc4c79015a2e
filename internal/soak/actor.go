package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// actor is one rank of a venue. All draw the same from common, so that they do
// the same acts, and each draws from own what is nobody else's business.
type actor struct {
	v           *venue
	id          int
	last        *ending
	r           *rank.Rank
	cancel      context.CancelCauseFunc // of all ranks
	common, own *rand.Rand
	acts        int

	work   *rank.Stream // that producers run on, which wait for nobody
	rigs   []*rig
	open   []*rig // whose plans are PREPARED, in the order of preparation
	made   []*plan.Plan
	box    *heap.Tensor // words that peers put into, and signals
	letter *heap.Tensor

	err       error // how the body ended
	left      bool  // it was to return early, without an error
	brief     bool  // no kernel waits for arrivals: a rank will return, and then nothing ends such a wait
	totals    plan.Totals
	sent      []uint64 // bytes prepared or put for each peer
	disturbed bool     // queues are not new, were made anew, or a preparation was torn
}

func newActor(v *venue, id int, last *ending) *actor {
	return &actor{
		v: v, id: id, last: last, sent: make([]uint64, v.ranks), disturbed: v.runs > 1,
		common: rand.New(rand.NewPCG(v.seed, uint64(v.runs))),
		own:    rand.New(rand.NewPCG(v.seed, uint64(1000*v.runs+id+1))),
	}
}

// body is the rank's life: some acts, then its ending or the closing of all
// that is open.
func (a *actor) body(ctx context.Context) error {
	if err := a.setUp(ctx); err != nil {
		return err
	}
	// What a kernel still writes when a plan is closed is sent as it stands, and
	// the race detector would tell.
	defer a.work.Sync(context.WithoutCancel(ctx))
	for _, t := range a.r.World().Tenants() { // of a Run that failed
		if err := ended(ctx, t); err != nil {
			return err
		}
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	used := a.r.World().Heap().Used()
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	for range 3 + a.common.IntN(10) {
		if err := a.act(ctx); err != nil {
			return err
		}
	}
	if a.last != nil {
		return a.last.come(ctx, a)
	}
	if a.v.temper == alone && oneIn(a.common, 5) {
		return nil // the world closes what is open
	}
	if err := a.closeAll(ctx); err != nil {
		return err
	}
	return a.settled(used)
}

func (a *actor) setUp(ctx context.Context) error {
	var err error
	if a.work, err = a.r.NewStream(); err != nil {
		return err
	}
	side, err := a.r.NewStream()
	if err != nil {
		return err
	}
	for _, s := range a.v.shapes {
		g, err := newRig(ctx, a.r, s, a.work, side)
		if err != nil {
			return err
		}
		a.rigs = append(a.rigs, g)
	}
	if a.box, err = a.r.Zeros(ctx, heap.Uint64, 2*a.v.ranks); err != nil {
		return err
	}
	a.letter, err = a.r.Zeros(ctx, heap.Uint64, 1)
	return err
}

// settled says that nothing is left of any plan.
func (a *actor) settled(used int64) error {
	if now := a.r.World().Heap().Used(); now != used {
		return fmt.Errorf("the heap holds %d bytes when all plans are closed, %d before", now, used)
	}
	if a.v.temper != alone {
		return nil
	}
	for peer := range a.v.ranks {
		if peer == a.id {
			continue
		}
		s := a.r.Queue(peer).Snapshot()
		if s.Held != 0 || s.Puts != 0 || len(s.Holders) > 0 || s.Fault != nil {
			return fmt.Errorf("queue %s is not empty when all plans are closed: %+v", s.Queue, s)
		}
		if s.Stats.Bytes != a.sent[peer] && !a.disturbed {
			return fmt.Errorf("queue %s has carried %d bytes, want %d", s.Queue, s.Stats.Bytes, a.sent[peer])
		}
	}
	return nil
}

// make opens a plan on a rig that has none.
func (a *actor) make(ctx context.Context, g *rig) (err error) {
	g.base = a.common.Uint64()
	if g.p, err = plan.New(ctx, a.r, g.out, g.mine); err != nil {
		return err
	}
	a.made = append(a.made, g.p)
	a.prepared(g)
	if a.id == 0 {
		a.v.b.soak.tally.plans.Add(1)
	}
	return nil
}

// prepared notes that a round of g's plan is on the queues, behind all others.
func (a *actor) prepared(g *rig) {
	a.open = append(slices.DeleteFunc(a.open, func(o *rig) bool { return o == g }), g)
	for peer := range a.sent {
		if g.sends(a.id) && peer != a.id {
			a.sent[peer] += g.payload()
		}
	}
}

// free is a rig without an open plan, or nil. A plan that is CLOSING sends
// what its rig has then, so the rig is left alone until it is CLOSED.
func (a *actor) free() *rig {
	for _, i := range a.common.Perm(len(a.rigs)) {
		if g := a.rigs[i]; !g.busy && !slices.Contains(a.open, g) {
			return g
		}
	}
	return nil
}

// atLeast opens plans until there are so many.
func (a *actor) atLeast(ctx context.Context, n int) error {
	for len(a.open) < n {
		g := a.free()
		if g == nil {
			if err := a.closeAll(ctx); err != nil {
				return err
			}
			continue
		}
		if err := a.make(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// close closes g's plan. Behind another that is open it is CLOSING after that.
func (a *actor) close(ctx context.Context, g *rig) error {
	a.drop(g)
	a.work.Sync(context.WithoutCancel(ctx)) // as body does
	return errors.Join(a.r.Sync(ctx), g.p.Close(ctx))
}

// drop forgets a plan that is closed.
func (a *actor) drop(g *rig) {
	g.busy = g.busy || a.v.temper != alone || a.open[0] != g
	a.open = slices.DeleteFunc(a.open, func(o *rig) bool { return o == g })
}

// closeAll closes every plan in any order and waits until all have ended.
func (a *actor) closeAll(ctx context.Context) error {
	open := slices.Clone(a.open)
	for _, i := range a.common.Perm(len(open)) {
		if err := a.close(ctx, open[i]); err != nil {
			return err
		}
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	for _, t := range a.r.World().Tenants() {
		if err := ended(ctx, t); err != nil {
			return err
		}
	}
	for _, p := range a.made {
		if s := p.State(); s != plan.Closed {
			return fmt.Errorf("%v is %v when all plans have ended", p, s)
		}
	}
	a.made = nil
	for _, g := range a.rigs {
		g.busy = false
	}
	return a.r.Barrier(ctx)
}

func ended(ctx context.Context, t rank.Tenant) error {
	select {
	case <-t.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%v does not end: %w", t, context.Cause(ctx))
	}
}

// begin starts g's round and its producer.
func (a *actor) begin(ctx context.Context, g *rig, flaws ...flaw) (plan.Handle, error) {
	h, err := g.p.Start(ctx)
	if err != nil {
		return h, err
	}
	if err := g.produce(a.own, h, flaws...); err != nil {
		return h, err
	}
	a.totals.Marks += uint64(len(g.mine) * g.writers())
	for _, f := range flaws {
		own := f.chunk >= g.p.FirstChunk() && f.chunk < g.p.FirstChunk()+len(g.mine)
		if own {
			a.totals.Marks += uint64(int64(f.marks))
		}
		if f.marks > 0 {
			a.totals.ExtraMarks += uint64(f.marks)
		}
	}
	return h, nil
}

// wait waits for g's round.
func (a *actor) wait(ctx context.Context, g *rig) error {
	err := g.p.Wait(ctx)
	if err == nil {
		a.totals.Rounds++
	} else if isA[*plan.TimeoutError](err) {
		a.totals.Timeouts++
	}
	return err
}

// round is a whole round of g's plan but for its NextRound.
func (a *actor) round(ctx context.Context, g *rig) error {
	if _, err := a.begin(ctx, g); err != nil {
		return err
	}
	return a.finish(ctx, g)
}

// finish waits for g's round and checks every byte.
func (a *actor) finish(ctx context.Context, g *rig) error {
	if err := a.wait(ctx, g); err != nil {
		return err
	}
	if err := g.check(g.p.Round()); err != nil {
		return err
	}
	t := &a.v.b.soak.tally
	for of := range a.v.ranks {
		if of != a.id && g.sends(of) {
			t.bytes.Add(g.payload())
		}
	}
	if a.id == 0 {
		t.rounds.Add(1)
	}
	return nil
}

func (a *actor) nextRound(ctx context.Context, g *rig) error {
	err := g.p.NextRound(ctx)
	if err == nil {
		a.prepared(g)
	}
	return err
}

// step is a round of the n plans that were prepared first: all are started in
// that order and their producers launched, then waited for in any order, then
// handed back in another.
func (a *actor) step(ctx context.Context, n int) error {
	batch := slices.Clone(a.open[:n])
	consumed := make([]bool, n)
	for i, g := range batch {
		h, err := a.begin(ctx, g)
		if err != nil {
			return err
		}
		if consumed[i] = oneIn(a.own, 3) && !a.brief; consumed[i] {
			if err := g.consume(h); err != nil {
				return err
			}
		}
	}
	for _, i := range a.own.Perm(n) {
		if err := a.finish(ctx, batch[i]); err != nil {
			return err
		}
		if consumed[i] {
			if err := batch[i].consumed(); err != nil {
				return err
			}
		}
	}
	for _, i := range a.common.Perm(n) {
		if err := a.nextRound(ctx, batch[i]); err != nil {
			return err
		}
	}
	return nil
}
