package plan

import (
	"context"
	"errors"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// Wait returns once the round is delivered: what the rank has launched has
// ended, its chunks are marked ready and have arrived at every peer, and every
// other rank's chunks have arrived here. Then the plan is DONE.
//
// It fails with a *MarksError as soon as a chunk was marked too often or by
// the wrong rank, with a *copyengine.FaultError, with the *hip.KernelError of
// a kernel, with a *CutError if a peer closes the plan before it has marked all
// of its chunks, with a *rank.GoneError if a peer's body ends before that, or,
// when ctx ends, with a *TimeoutError that names the chunks that
// are short and what each waits for. Then the plan is FAILED.
func (p *Plan) Wait(ctx context.Context) error {
	if err := p.expect("Wait", Started); err != nil {
		return err
	}
	began := hip.Clock()
	err := p.wait(ctx)
	p.observe(time.Duration(hip.Clock()-began), err)
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.waited(p.rank.ID(), err)
	if err != nil {
		return p.wrap("Wait", err)
	}
	return nil
}

// observe tells the world's tally and recorder that a Wait has ended.
func (p *Plan) observe(took time.Duration, err error) {
	s := p.shared
	tally := &s.world.Tally().Ranks[p.rank.ID()]
	tally.Wait.Observe(took)
	if err == nil {
		tally.Rounds.Add(1)
	} else if _, late := err.(*TimeoutError); late {
		tally.Timeouts.Add(1)
	}
	if s.tables[p.rank.ID()].at.stamps != 0 {
		p.record(p.Round())
	}
}

// wait looks at what must hold in the order in which it comes true.
func (p *Plan) wait(ctx context.Context) error {
	s, round := p.shared, p.Round()
	if err := p.inject(inject.Wait); err != nil {
		return err
	}
	if err := p.awaitLaunches(ctx, round); err != nil {
		return err
	}
	if err := p.awaitQueues(ctx, round); err != nil {
		return err
	}
	if err := p.awaitChunks(ctx, round, p.mine(), p, kernels.GateReady); err != nil {
		return err
	}
	for _, o := range s.parts {
		if o == p {
			continue
		}
		if err := p.awaitChunks(ctx, round, &p.tables[o.rank.ID()], p, kernels.GateArrival); err != nil {
			return err
		}
	}
	for _, o := range s.parts {
		if o == p {
			continue
		}
		if err := p.awaitChunks(ctx, round, p.mine(), o, kernels.GateArrival); err != nil {
			return err
		}
	}
	for _, q := range p.queues {
		if err := q.Drain(ctx, p.waiter, &p.owner); err != nil {
			return p.ended(ctx, round, err)
		}
	}
	if err := p.miscounted(round); err != nil {
		return err
	}
	return p.cutShort(round)
}

// mine is the rank's own table.
func (p *Plan) mine() *table { return &p.tables[p.rank.ID()] }

// awaitLaunches waits until everything launched on the rank has ended.
func (p *Plan) awaitLaunches(ctx context.Context, round uint64) error {
	if p.waiter.Spin(p.rank.Idle) {
		return p.alarm(round)
	}
	defer p.waiter.Unwatch()
	for {
		p.watchFaults()
		if !p.rank.WatchLaunches(p.waiter) {
			return p.alarm(round)
		}
		if err := p.alarm(round); err != nil {
			return err
		}
		if err := p.waiter.Park(ctx); err != nil {
			return p.ended(ctx, round, err)
		}
		p.waiter.Unwatch()
	}
}

// awaitQueues waits until the engines have passed what the rank sends and what
// comes to it, where the host cannot read gates in place: a look at them is then
// a copy, for which the engines' other copies wait. After it a look at each
// table is enough.
func (p *Plan) awaitQueues(ctx context.Context, round uint64) error {
	mapped := true
	for i := range p.tables {
		mapped = mapped && p.tables[i].mem.Mapped()
	}
	if mapped {
		return nil
	}
	for _, o := range p.shared.parts {
		if o == p {
			continue
		}
		// What is noticed chunk by chunk is noticed sooner at the end: pauses grow
		// while nothing happens.
		t := &p.tables[o.rank.ID()]
		for c := p.first; c < p.first+len(p.own) && t.mem.Mapped(); c++ {
			if err := p.await(ctx, round, t, c, kernels.GateArrival); err != nil {
				return err
			}
		}
		err := p.awaitQueue(ctx, round, p.rank.Queue(o.rank.ID()), &p.owner)
		if err == nil {
			err = p.awaitQueue(ctx, round, o.rank.Queue(p.rank.ID()), &o.owner)
		}
		if err != nil {
			return err
		}
	}
	return p.mine().look()
}

// awaitQueue waits until the queue's engine has executed all that owner
// prepared.
func (p *Plan) awaitQueue(ctx context.Context, round uint64, q *copyengine.Queue, owner *copyengine.Owner) error {
	if p.waiter.Spin(func() bool { return q.Passed(owner) }) {
		return nil
	}
	q.Watch(p.waiter)
	p.watchFaults()
	defer p.waiter.Unwatch()
	for !q.Passed(owner) {
		if err := p.alarm(round); err != nil {
			return err
		}
		if err := p.waiter.Park(ctx); err != nil {
			return p.ended(ctx, round, err)
		}
	}
	return nil
}

// awaitChunks waits until a field of the gate rows of owner's chunks in t has
// come to round. The last chunk comes first, since it is the last to arrive:
// those before it then take a look each and no wake-up.
func (p *Plan) awaitChunks(ctx context.Context, round uint64, t *table, owner *Plan, field int64) error {
	for c := owner.first + len(owner.own) - 1; c >= owner.first; c-- {
		if err := p.await(ctx, round, t, c, field); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a field of chunk c's gate row in t has come to round.
func (p *Plan) await(ctx context.Context, round uint64, t *table, c int, field int64) error {
	if p.waiter.Spin(func() bool { return reached(t.load(c, field), round) }) {
		return nil
	}
	p.watchFaults()
	t.mem.Watch(p.waiter, t.gate(c, field))
	defer p.waiter.Unwatch()
	for {
		if err := t.look(); err != nil {
			return err
		}
		if reached(t.load(c, field), round) {
			return nil
		}
		if err := p.alarm(round); err != nil {
			return err
		}
		if err := p.waiter.Park(ctx); err != nil {
			return p.ended(ctx, round, err)
		}
	}
}

// watchFaults has the waiter woken by marks that should not have been.
func (p *Plan) watchFaults() {
	t := p.mine()
	t.mem.Glance(p.waiter, t.base+t.at.faults+kernels.FaultForeign)
	t.mem.Glance(p.waiter, t.base+t.at.faults+kernels.FaultExtra)
}

// alarm is what ends a wait at once: a fault, a kernel that failed, or marks
// that should not have been. The fault row tells of these without a look at
// every chunk.
func (p *Plan) alarm(round uint64) error {
	if err := p.fault.Load(); err != nil {
		return *err
	}
	if err := p.rank.KernelErr(); err != nil {
		return err
	}
	t := p.mine()
	if err := t.look(); err != nil {
		return err
	}
	if t.fault(kernels.FaultForeign)+t.fault(kernels.FaultExtra) > 0 {
		return p.miscounted(round)
	}
	if err := p.cutShort(round); err != nil {
		return err
	}
	return p.deserted(round)
}

// cutShort returns a *CutError if a peer has closed the plan before it had
// marked all of its chunks: what arrives of them is not the round's data.
func (p *Plan) cutShort(round uint64) error {
	for _, o := range p.shared.parts {
		if o != p && o.cut.Load() {
			return &CutError{Plan: p.shared.name, Rank: p.rank.ID(), Round: round, Peer: o.rank.ID()}
		}
	}
	return nil
}

// deserted returns a *rank.GoneError if a chunk that this rank waits for will
// never be marked: its rank's body has ended, and no kernel of it runs.
func (p *Plan) deserted(round uint64) error {
	s := p.shared
	for _, o := range s.parts {
		why := s.world.Gone(o.rank.ID())
		if why == nil || o == p || !o.rank.Idle() {
			continue
		}
		if err := p.tables[o.rank.ID()].look(); err != nil {
			return err
		}
		for c := o.first; c < o.first+len(o.own); c++ {
			if s.marksShort(p.tables, c, round) != "" {
				return &rank.GoneError{Call: "Wait of " + s.name, Rank: o.rank.ID(), Err: why}
			}
		}
	}
	return nil
}

// miscounted compares every mark count of the rank's chunks with what it must
// be at most in this round, and returns a *MarksError if one is beyond.
func (p *Plan) miscounted(round uint64) error {
	s := p.shared
	t := p.mine()
	var extra []Miscount
	for c := p.first; c < p.first+len(p.own); c++ {
		writers := uint64(s.chunks[c].writers)
		if seen := t.load(c, kernels.GateWriters); seen > round*writers {
			extra = append(extra, Miscount{Chunk: c, Owner: p.rank.ID(), Seen: seen - (round-1)*writers, Expected: writers})
		}
	}
	foreign := t.fault(kernels.FaultForeign)
	if len(extra) == 0 && foreign == 0 {
		return nil
	}
	return &MarksError{
		Plan: s.name, Rank: p.rank.ID(), Round: round, Extra: extra,
		Foreign: foreign, Last: t.fault(kernels.FaultLast), First: p.first, Own: len(p.own),
	}
}

// ended says why a wait that was cut short had not come to its end.
func (p *Plan) ended(ctx context.Context, round uint64, err error) error {
	if ctx.Err() == nil || errors.Is(err, hip.ErrClosed) {
		return err
	}
	if alarm := p.alarm(round); alarm != nil {
		return alarm
	}
	short, err := p.short(round)
	if err != nil {
		return err
	}
	return &TimeoutError{Plan: p.shared.name, Rank: p.rank.ID(), Round: round, Short: short, Running: p.rank.Running(), Err: context.Cause(ctx)}
}
