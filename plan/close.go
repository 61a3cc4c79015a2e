package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
)

// Close ends the plan. Collective: it waits under ctx until every rank has
// come to Close or its body has ended, since peers' copies can still touch
// this rank's buffer. In the middle of a round, or before it, it opens this
// rank's gates: the chunks are sent as they stand, half-written where a kernel
// is still writing.
//
// If the plan's copies are queued behind those of an earlier plan that still
// waits, Close returns with the plan CLOSING, which ends by itself when the
// earlier plan does; Done tells. When ctx ends, only the waiting is cut, and
// the plan is CLOSING too. A second Close has no effect.
func (p *Plan) Close(ctx context.Context) error {
	first, err := p.leave()
	if !first {
		return nil
	}
	if err == nil {
		err = p.inject(inject.Close)
	}
	if err != nil {
		return errors.Join(err, p.awaitClose(ctx))
	}
	return p.awaitClose(ctx)
}

// awaitClose waits for the other ranks and the plan's copies.
func (p *Plan) awaitClose(ctx context.Context) error {
	s := p.shared
	if err := p.rank.EnterClose(ctx, s.closing); err != nil {
		return p.wrap("Close", err)
	}
	s.end()
	if s.behind() {
		return nil
	}
	if err := s.awaitDone(ctx); err != nil {
		return p.wrap("Close", err)
	}
	return s.awaitFollowers(ctx)
}

// leave does the rank's own part of closing, once: its gates are opened and
// its queues told. It reports false if that was done before. The error is that
// of a device which cannot open the gates.
func (p *Plan) leave() (bool, error) {
	s := p.shared
	s.mu.Lock()
	first, open := s.machine.close(p.rank.ID())
	s.mu.Unlock()
	if open == 0 {
		return first, nil
	}
	p.cut.Store(p.unmarked(open)) // before a peer can see the chunks arrive
	return first, p.openGates(open)
}

// unmarked says whether one of the rank's chunks has not all its marks; a
// device that cannot tell counts as such.
func (p *Plan) unmarked(round uint64) bool {
	if p.mine().look() != nil {
		return true
	}
	for c := p.first; c < p.first+len(p.own); c++ {
		if p.shared.marksShort(p.tables, c, round) != "" {
			return true
		}
	}
	return false
}

// openGates lets everything pass that queues hold of the rank's round.
func (p *Plan) openGates(round uint64) error {
	err := p.shared.tables[p.rank.ID()].open(p.first, len(p.own), round)
	copyengine.Flush(&p.owner, p.queues)
	if err != nil {
		return p.wrap("opening the gates", err)
	}
	return nil
}

// Left has every rank look whether the one whose body has ended leaves chunks
// short.
func (s *shared) Left() {
	for _, p := range s.parts {
		p.waiter.Wake()
	}
}

// Abandon closes the plan for ranks that will not: those whose bodies have
// ended, or all of them.
func (s *shared) Abandon() { s.end() }

// Done is closed once the plan is CLOSED.
func (s *shared) Done() <-chan struct{} { return s.done }

// end starts the plan's end, once every rank has come to Close or will not.
func (s *shared) end() {
	s.finish.Do(func() {
		for _, p := range s.parts {
			_, _ = p.leave() // gates that no longer open are those of a device that is lost
		}
		s.finished.Store(true)
		s.world.Go(s.drain)
	})
}

// behind reports whether an earlier plan that still waits is ahead of s on
// some queue.
func (s *shared) behind() bool {
	for _, it := range s.items {
		if _, waits := it.Queue.Behind(it.Owner); waits {
			return true
		}
	}
	return false
}

// drain waits until no queue holds packets of the plan and no kernel runs with
// its handle, then gives its memory back. A queue that has faulted executes
// nothing any more.
func (s *shared) drain(ctx context.Context) {
	w := hip.NewWaiter()
	for _, it := range s.items {
		if err := it.Queue.Drain(ctx, w, it.Owner); err == nil {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		// If the queue cannot be made anew it stays faulted, and says so to
		// whoever uses it next.
		_ = it.Queue.Forget(ctx, it.Owner)
	}
	if err := w.Await(ctx, &s.using, func(n uint64) bool { return n == 0 }, nil); err != nil {
		return
	}
	s.mu.Lock()
	s.machine.drained()
	s.mu.Unlock()
	s.retire()
	s.free()
	s.world.Unregister(s)
	close(s.done)
}

// awaitDone waits until the plan is CLOSED.
func (s *shared) awaitDone(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is CLOSING: its copies or kernels have not ended: %w", s.name, context.Cause(ctx))
	}
}

// awaitFollowers waits for plans of the world that were CLOSING behind this
// one and that nothing holds any more.
func (s *shared) awaitFollowers(ctx context.Context) error {
	for _, t := range s.world.Tenants() {
		f, ok := t.(*shared)
		if !ok || !f.finished.Load() || f.behind() {
			continue
		}
		if err := f.awaitDone(ctx); err != nil {
			return err
		}
	}
	return nil
}
