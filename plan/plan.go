package plan

import (
	"context"
	"errors"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/rank"
)

// String names the plan, as errors do.
func (p *Plan) String() string { return p.shared.name }

// State is where the rank's part of the plan is in its life.
func (p *Plan) State() State {
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.parts[p.rank.ID()].state
}

// Round is the round that is prepared, running or done.
func (p *Plan) Round() uint64 {
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.round
}

// FirstChunk is the id of the rank's first chunk: ids count over all ranks.
func (p *Plan) FirstChunk() int { return p.first }

// Chunks is the number of chunks of all ranks.
func (p *Plan) Chunks() int { return len(p.shared.chunks) }

// Done is closed once the plan is CLOSED.
func (p *Plan) Done() <-chan struct{} { return p.shared.done }

// expect says whether op is allowed now.
func (p *Plan) expect(op string, want State) error {
	s := p.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.expect(p.rank.ID(), op, want)
}

// wrap says which operation err ended, unless err says it.
func (p *Plan) wrap(op string, err error) error {
	switch err.(type) {
	case *TimeoutError, *MarksError, *CutError:
		return err
	}
	return &opError{op: op, plan: p.shared.name, rank: p.rank.ID(), err: err}
}

// Handle is what a rank's kernels get to mark and to wait with, for one round.
type Handle struct {
	plan  *Plan
	round uint64
}

// Addr is the address of the handle's words, whose layout is package kernels'.
func (h Handle) Addr() uint64 {
	t := h.plan.shared.tables[h.plan.rank.ID()]
	return t.addr(t.base + t.at.handle)
}

// Round is the round that the handle is for.
func (h Handle) Round() uint64 { return h.round }

// Use makes the handle an argument of a launch. The plan's memory is kept
// until the launch has ended. The error is a *HandleError.
func (h Handle) Use(r *rank.Rank) (hip.Arg, func(), error) {
	p := h.plan
	if p == nil {
		return hip.Arg{}, nil, &HandleError{Plan: "no plan", Why: "it is the zero Handle; take the one that Start returns"}
	}
	s := p.shared
	if r != p.rank {
		return hip.Arg{}, nil, &HandleError{Plan: s.name, Why: "it is another rank's; each rank launches with the handle of its own Start"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.round != s.machine.round || s.machine.parts[r.ID()].state >= Closing {
		return hip.Arg{}, nil, &HandleError{Plan: s.name, Why: "it is of a round that has ended; take the one that this round's Start returned"}
	}
	s.using.Add(1)
	return hip.U64(h.Addr()), s.unuse, nil
}

func (s *shared) unuse() { s.using.Add(^uint64(0)) }

// Start begins the round on this rank and returns the handle for its kernels.
// It refuses, with a *copyengine.OrderError, while a plan of this world that
// was prepared earlier on a queue they share has not started; behind another
// world's plan it waits under ctx.
func (p *Plan) Start(ctx context.Context) (Handle, error) {
	if err := p.expect("Start", Prepared); err != nil {
		return Handle{}, err
	}
	s := p.shared
	err := p.inject(inject.Start)
	if err == nil {
		err = copyengine.Start(ctx, p.waiter, &p.owner, p.queues)
	}
	if err != nil {
		return Handle{}, p.wrap("Start", err)
	}
	t := s.tables[p.rank.ID()]
	err = t.begin(p.Round())
	if err == nil && t.at.stamps != 0 {
		err = t.clearStamps(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.machine.fail(p.rank.ID(), err)
		return Handle{}, p.wrap("Start", err)
	}
	s.machine.start(p.rank.ID())
	p.started.Store(hip.Clock())
	return Handle{plan: p, round: s.machine.round}, nil
}

// NextRound hands the round's data back and prepares the next round. When it
// returns, a peer may start that round and overwrite the buffer: what the rank
// launched before the call has ended, and nothing may read the buffer until
// the next Wait. Collective, and all or none: when it fails and nothing was
// rung, the plan stays DONE on every rank and NextRound may be tried again.
func (p *Plan) NextRound(ctx context.Context) error {
	s := p.shared
	s.mu.Lock()
	err := s.machine.mayAdvance(p.rank.ID())
	closed := s.machine.parts[p.rank.ID()].came
	round := s.machine.round + 1
	s.mu.Unlock()
	if closed { // the others learn of it by themselves
		return err
	}
	if err == nil {
		err = p.inject(inject.HandBack)
	}
	if err == nil {
		err = p.handBack(ctx, uint32(round))
	}
	p.next.Err = err
	if err = p.rank.Meet(ctx, &p.next); err == nil {
		return nil
	}
	s.world.Tally().Refuse(kindOf(err))
	s.mu.Lock()
	s.machine.refused(p.rank.ID())
	s.mu.Unlock()
	return p.wrap("NextRound", err)
}

// handBack waits for what the rank has launched and patches its programs. A
// mark that came after Wait would open the next round's gate early: it makes
// the plan FAILED, as a kernel that failed does.
func (p *Plan) handBack(ctx context.Context, round uint32) error {
	if !p.rank.Idle() {
		if err := p.rank.Sync(ctx); err != nil && p.rank.KernelErr() == nil {
			return err
		}
	}
	if err := p.late(uint64(round) - 1); err != nil {
		s := p.shared
		s.mu.Lock()
		defer s.mu.Unlock()
		s.machine.fail(p.rank.ID(), err)
		return err
	}
	for _, program := range p.programs {
		program.SetRound(round)
	}
	return nil
}

// late is what has gone wrong on the rank since Wait, when everything that it
// has launched has ended.
func (p *Plan) late(round uint64) error {
	if err := p.rank.KernelErr(); err != nil {
		return err
	}
	if err := p.mine().look(); err != nil {
		return err
	}
	return p.miscounted(round)
}

// torn says whether a preparation failed among the doorbells.
func torn(err error) bool {
	var ring *copyengine.RingError
	return errors.As(err, &ring)
}

// faulted is told that a queue which carries the rank's chunks has faulted.
func (p *Plan) faulted(err error) {
	p.fault.CompareAndSwap(nil, &err)
	p.waiter.Wake()
}

// inject is what a test has step meet on the rank.
func (p *Plan) inject(step inject.Step) error {
	return p.shared.world.Node().Inject(step, p.rank.ID())
}
