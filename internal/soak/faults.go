package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// faults are what a world survives.
var faults = []act{
	{kind: "New that fails at a step", fault: true, private: true, do: (*actor).failNew},
	{kind: "NextRound that fails at a step", fault: true, private: true, open: 1, do: (*actor).failNext},
	{kind: "an engine that faults", fault: true, private: true, seen: true, ranks: 2, open: 1, do: (*actor).faultEngine},
	{kind: "an engine that stalls", fault: true, private: true, seen: true, ranks: 2, open: 1, do: (*actor).stallEngine},
	{kind: "slow engines", fault: true, private: true, seen: true, ranks: 2, open: 1, do: (*actor).slowEngines},
	{kind: "a put that is lost", fault: true, private: true, seen: true, ranks: 2, do: (*actor).losePut},
	{kind: "a mark too few", fault: true, private: true, open: 1, do: (*actor).markTooFew},
	{kind: "a mark too many", fault: true, open: 1, do: (*actor).markTooMany},
	{kind: "a mark of another's chunk", fault: true, open: 1, do: (*actor).markForeign},
	{kind: "a rank that withdraws", fault: true, ranks: 2, open: 1, do: (*actor).withdraw},
	{kind: "a rank in another collective", fault: true, ranks: 2, open: 1, do: (*actor).mismatch},
	{kind: "a rank that closes at the end of a round", fault: true, ranks: 2, open: 1, do: (*actor).closeEarly},
	{kind: "a rank that closes in the middle of a round", fault: true, ranks: 2, open: 1, do: (*actor).closeMidRound},
	{kind: "a Close that is cut", fault: true, open: 1, do: (*actor).cutClose},
	{kind: "no room in the heap", fault: true, do: (*actor).exhaustHeap},
	{kind: "no room on a queue", fault: true, ranks: 2, do: (*actor).exhaustQueue},
	{kind: "a put while copies are prepared", fault: true, ranks: 2, open: 1, do: (*actor).putPrepared},
	{kind: "plans started out of order", fault: true, private: true, ranks: 2, open: 2, do: (*actor).startOutOfOrder},
}

// want says that an error is what it must be.
func (a *actor) want(what string, got error, ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("rank %d: %s: got %v", a.id, what, got)
}

func wants[E error](a *actor, err error) error {
	var e E
	return a.want(fmt.Sprintf("want a %T", e), err, isA[E](err))
}

// soon bounds a wait that is meant to end early.
func (a *actor) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(5+a.own.IntN(20))*time.Millisecond)
}

// armed runs do on every rank while a step of one rank fails.
func (a *actor) armed(ctx context.Context, s *strike, do func() error) error {
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if a.id == 0 {
		a.v.b.d.strike.Store(s)
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if a.id == 0 {
		a.v.b.d.strike.Store(nil)
		if !s.done.Load() {
			return fmt.Errorf("%s of rank %d did not fail", s.step, s.rank)
		}
	}
	return nil
}

// stepOf draws one of the steps that a rank which sends comes to.
func (a *actor) stepOf(g *rig, steps ...inject.Step) *strike {
	s := &strike{step: pick(a.common, steps...), rank: g.sender(a.common, a.v.ranks), way: "error"}
	switch s.step {
	case inject.Gates:
		s.rank = 0
	case inject.Reserve, inject.Ring:
		s.after.Store(int64(a.common.IntN(max(1, a.v.ranks-1))))
		if a.v.ranks == 1 {
			s.step = steps[0] // it has no queues
		}
	}
	if s.step != inject.Ring && s.step != inject.Reserve {
		s.after.Store(0)
	}
	return s
}

func (a *actor) failNew(ctx context.Context) error {
	g := a.free()
	if g == nil {
		if err := a.closeAll(ctx); err != nil {
			return err
		}
		g = a.free()
	}
	return a.armed(ctx, a.stepOf(g, inject.Validate, inject.Encode, inject.Gates, inject.Reserve, inject.Ring), func() error {
		_, err := plan.New(ctx, a.r, g.out, g.mine)
		if isA[*copyengine.RingError](err) {
			a.disturbed, g.busy = true, true
		}
		return a.want("want the injected error", err, errors.Is(err, errInjected))
	})
}

func (a *actor) failNext(ctx context.Context) error {
	g := a.front()
	if err := a.round(ctx, g); err != nil {
		return err
	}
	torn := false
	err := a.armed(ctx, a.stepOf(g, inject.HandBack, inject.Reserve, inject.Ring), func() error {
		err := g.p.NextRound(ctx)
		torn = isA[*copyengine.RingError](err)
		return a.want("want the injected error", err, errors.Is(err, errInjected))
	})
	if err != nil {
		return err
	}
	if !torn {
		return a.nextRound(ctx, g) // it is DONE as before
	}
	a.disturbed, g.busy = true, true
	if s := g.p.State(); s != plan.Failed {
		return fmt.Errorf("%v is %v after a preparation that was torn", g.p, s)
	}
	return a.close(ctx, g)
}

// target is a queue, and the how manieth packet on it from now on that belongs
// to the first plan.
type target struct{ from, to, packet int }

func (a *actor) target(g *rig) target {
	t := target{from: g.sender(a.common, a.v.ranks)}
	t.to = (t.from + 1 + a.common.IntN(a.v.ranks-1)) % a.v.ranks
	t.packet = a.common.IntN(3*g.chunks - 1) // the engine is at the first poll already
	return t
}

// hit calls do at the packet.
func (t target) hit(do func() error) packetHook {
	var seen atomic.Int64
	return func(from, to int, p *sdma.Packet) error {
		switch p.Op {
		case sdma.OpPoll, sdma.OpCopyLinear, sdma.OpCopyWindow, sdma.OpAtomic:
			if from == t.from && to == t.to && seen.Add(1) == int64(t.packet)+1 {
				return do()
			}
		}
		return nil
	}
}

// hooked runs do on every rank while packets are seen by a hook.
func (a *actor) hooked(ctx context.Context, see packetHook, do func() error) error {
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if a.id == 0 {
		defer a.v.b.d.packets(see)()
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return a.r.Barrier(ctx)
}

// faultEngine has a queue fault in the first plan's round. The rank that sends
// on it is told at once, the one that receives waits in vain, and the others do
// not notice. Every plan is closed, and the queue made anew.
func (a *actor) faultEngine(ctx context.Context) error {
	g := a.front()
	t := a.target(g)
	a.disturbed = true
	err := a.hooked(ctx, t.hit(func() error { return errInjected }), func() error {
		if _, err := a.begin(ctx, g); err != nil {
			return err
		}
		switch a.id {
		case t.from:
			err := a.wait(ctx, g)
			return a.want("want the fault", err, isA[*copyengine.FaultError](err) && errors.Is(err, errInjected))
		case t.to:
			soon, cancel := a.soon(ctx)
			defer cancel()
			return wants[*plan.TimeoutError](a, a.wait(soon, g))
		}
		return a.finish(ctx, g)
	})
	if err != nil {
		return err
	}
	if err := a.closeAll(ctx); err != nil {
		return err
	}
	if a.id == t.from {
		return a.r.Queue(t.to).Fault()
	}
	return nil
}

// stallEngine has a queue hang in the first plan's round, until its plan has
// timed out.
func (a *actor) stallEngine(ctx context.Context) error {
	g := a.front()
	t := a.target(g)
	l := a.latch()
	defer l.release()
	err := a.hooked(ctx, t.hit(func() error { <-l.open; return nil }), func() error {
		if _, err := a.begin(ctx, g); err != nil {
			return err
		}
		if a.id != t.from && a.id != t.to {
			return a.finish(ctx, g)
		}
		soon, cancel := a.soon(ctx)
		defer cancel()
		return wants[*plan.TimeoutError](a, a.wait(soon, g))
	})
	if err != nil {
		return err
	}
	l.release()
	return a.close(ctx, g)
}

// slowEngines has every packet take a while.
func (a *actor) slowEngines(ctx context.Context) error {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(a.v.seed, uint64(a.acts)))
	most := 1 + a.common.IntN(200)
	slow := func(int, int, *sdma.Packet) error {
		mu.Lock()
		d := time.Duration(rnd.IntN(most)) * time.Microsecond
		mu.Unlock()
		time.Sleep(d)
		return nil
	}
	return a.hooked(ctx, slow, func() error {
		for range 2 {
			if err := a.step(ctx, 1+a.common.IntN(len(a.open))); err != nil {
				return err
			}
		}
		return nil
	})
}

// losePut has a queue fault under a put.
func (a *actor) losePut(ctx context.Context) error {
	if err := a.closeAll(ctx); err != nil {
		return err
	}
	from := a.common.IntN(a.v.ranks)
	to := (from + 1) % a.v.ranks
	a.disturbed = true
	err := a.hooked(ctx, target{from, to, 0}.hit(func() error { return errInjected }), func() error {
		if a.id != from {
			return nil
		}
		err := errors.Join(a.send(ctx, to, 1), a.r.Quiet(ctx, to))
		return a.want("want the fault", err, isA[*copyengine.FaultError](err))
	})
	if err != nil || a.id != from {
		return errors.Join(err, a.r.Barrier(ctx))
	}
	for { // until the queue has been made anew
		err := errors.Join(a.send(ctx, to, 2), a.r.Quiet(ctx, to))
		if err == nil {
			return a.r.Barrier(ctx)
		}
		if !isA[*copyengine.FaultError](err) || ctx.Err() != nil {
			return err
		}
		runtime.Gosched()
	}
}

// flawed runs the first plan's round with a flaw of one rank, and closes it.
func (a *actor) flawed(ctx context.Context, culprit int, f flaw, expect func(ctx context.Context, g *rig) error) error {
	g := a.front()
	var flaws []flaw
	if a.id == culprit {
		flaws = append(flaws, f)
	}
	if _, err := a.begin(ctx, g, flaws...); err != nil {
		return err
	}
	if err := expect(ctx, g); err != nil {
		return err
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	return a.close(ctx, g)
}

func (a *actor) markTooFew(ctx context.Context) error {
	g := a.front()
	culprit := g.sender(a.common, a.v.ranks)
	f := flaw{-1, g.first(culprit) + a.common.IntN(g.chunks)}
	return a.flawed(ctx, culprit, f, func(ctx context.Context, g *rig) error {
		soon, cancel := a.soon(ctx)
		defer cancel()
		return wants[*plan.TimeoutError](a, a.wait(soon, g))
	})
}

func (a *actor) markTooMany(ctx context.Context) error {
	g := a.front()
	culprit := g.sender(a.common, a.v.ranks)
	f := flaw{1 + a.common.IntN(2), g.first(culprit) + a.common.IntN(g.chunks)}
	return a.marksError(ctx, culprit, f)
}

func (a *actor) markForeign(ctx context.Context) error {
	g := a.front()
	culprit := a.common.IntN(a.v.ranks)
	c := g.first(a.v.ranks) + a.common.IntN(3) // there is no such chunk
	if peer := a.common.IntN(a.v.ranks); peer != culprit && g.sends(peer) {
		c = g.first(peer)
	}
	return a.marksError(ctx, culprit, flaw{1, c})
}

// marksError has only the culprit find the flaw. What the others get may have
// been sent too early.
func (a *actor) marksError(ctx context.Context, culprit int, f flaw) error {
	return a.flawed(ctx, culprit, f, func(ctx context.Context, g *rig) error {
		err := a.wait(ctx, g)
		if a.id == culprit {
			return wants[*plan.MarksError](a, err)
		}
		return err
	})
}

func (a *actor) withdraw(ctx context.Context) error {
	g := a.front()
	if err := a.round(ctx, g); err != nil {
		return err
	}
	l := a.latch()
	var err error
	if a.id == a.common.IntN(a.v.ranks) {
		soon, cancel := context.WithTimeout(ctx, time.Duration(a.own.IntN(3000))*time.Microsecond)
		err = g.p.NextRound(soon)
		cancel()
		l.release()
	} else {
		if err := l.wait(ctx); err != nil {
			return err
		}
		err = g.p.NextRound(ctx)
	}
	if err := wants[*rank.WithdrawnError](a, err); err != nil {
		return err
	}
	return a.nextRound(ctx, g)
}

func (a *actor) mismatch(ctx context.Context) error {
	g := a.front()
	if err := a.round(ctx, g); err != nil {
		return err
	}
	call := g.p.NextRound
	if a.id == a.common.IntN(a.v.ranks) {
		call = a.r.Barrier
	}
	if err := wants[*rank.MismatchError](a, call(ctx)); err != nil {
		return err
	}
	return a.nextRound(ctx, g)
}

func (a *actor) closeEarly(ctx context.Context) error {
	g := a.front()
	if err := a.round(ctx, g); err != nil {
		return err
	}
	if a.id != a.common.IntN(a.v.ranks) {
		if err := wants[*rank.ClosingError](a, g.p.NextRound(ctx)); err != nil {
			return err
		}
	}
	return a.close(ctx, g)
}

func (a *actor) closeMidRound(ctx context.Context) error {
	g := a.front()
	if a.id == g.sender(a.common, a.v.ranks) {
		if _, err := g.p.Start(ctx); err != nil {
			return err
		}
		return a.close(ctx, g)
	}
	if _, err := a.begin(ctx, g); err != nil {
		return err
	}
	if err := wants[*plan.CutError](a, a.wait(ctx, g)); err != nil {
		return err
	}
	return a.close(ctx, g)
}

func (a *actor) cutClose(ctx context.Context) error {
	g := a.front()
	if a.id != a.common.IntN(a.v.ranks) {
		if err := a.close(ctx, g); err != nil {
			return err
		}
		return ended(ctx, doneOf{g.p})
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	a.drop(g)
	err := g.p.Close(gone)
	if err := a.want("want nil or the context's error", err, err == nil || errors.Is(err, context.Canceled)); err != nil {
		return err
	}
	return ended(ctx, doneOf{g.p})
}

// doneOf is a plan as what lives in a world.
type doneOf struct{ *plan.Plan }

func (doneOf) Left()    {}
func (doneOf) Abandon() {}

// traceless runs do, which must fail and leave nothing.
func (a *actor) traceless(ctx context.Context, do func() error) error {
	before := func() string {
		s := fmt.Sprintf("heap %d", a.r.World().Heap().Used())
		for peer := range a.v.ranks {
			if peer != a.id && a.v.temper == alone {
				q := a.r.Queue(peer).Snapshot()
				s += fmt.Sprintf(", %d holders, %d puts", len(q.Holders), q.Puts)
			}
		}
		return s
	}
	if err := a.closeAll(ctx); err != nil {
		return err
	}
	was := before()
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if is := before(); is != was {
		return fmt.Errorf("before: %s; after: %s", was, is)
	}
	return a.r.Barrier(ctx)
}

func (a *actor) exhaustHeap(ctx context.Context) error {
	g := a.rigs[a.common.IntN(len(a.rigs))]
	size := a.r.World().Heap().Size()
	gates := oneIn(a.common, 2)
	return a.traceless(ctx, func() error {
		if !gates {
			_, err := a.r.Zeros(ctx, heap.Uint8, int(size))
			return wants[*heap.ExhaustedError](a, err)
		}
		mine := slices.Clone(g.mine)
		for len(mine) > 0 && int64(len(mine)) < size/64 { // a gate row each
			mine = append(mine, mine...)
		}
		_, err := plan.New(ctx, a.r, g.out, mine)
		return wants[*heap.ExhaustedError](a, err)
	})
}

func (a *actor) exhaustQueue(ctx context.Context) error {
	g := a.rigs[a.common.IntN(len(a.rigs))]
	return a.traceless(ctx, func() error {
		mine := slices.Clone(g.mine)
		if len(mine) > 0 {
			limit := a.r.Queue((a.id + 1) % a.v.ranks).Limits().Prepared
			mine[0].Regions = slices.Repeat(mine[0].Regions, int(limit/sdma.LinearBytes)+1)
		}
		_, err := plan.New(ctx, a.r, g.out, mine)
		return wants[*copyengine.CapacityError](a, err)
	})
}

func (a *actor) putPrepared(ctx context.Context) error {
	if a.id != a.front().sender(a.common, a.v.ranks) {
		return nil
	}
	peer := (a.id + 1) % a.v.ranks
	if err := wants[*copyengine.ExclusionError](a, a.send(ctx, peer, 0)); err != nil {
		return err
	}
	return wants[*copyengine.ExclusionError](a, a.r.Quiet(ctx, peer))
}

func (a *actor) startOutOfOrder(ctx context.Context) error {
	if !slices.Contains(a.senders(a.open[:2]...), a.id) {
		return nil
	}
	_, err := a.open[1].p.Start(ctx)
	return wants[*copyengine.OrderError](a, err)
}
