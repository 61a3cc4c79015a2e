package copyengine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/triggeredplans/sluice/hip"
)

// streamHardware is a queue whose chains wait on a stream of the driver's. What
// was appended is submitted by Ring; the position of a program is how many were
// submitted before it and with it.
type streamHardware struct {
	stream hip.CopyStream
	engine string
	fault  func(error)

	passed hip.Word // positions up to which everything is done, signals too

	mu        sync.Mutex
	position  uint64
	pending   []*streamProgram // appended and not rung
	under     []flight         // rung and not done, in order
	signals   int              // that are still to be given
	signaling bool             // there is a goroutine that gives them
	signalers sync.WaitGroup   // it
	stats     Stats
	err       error
}

// flight is a program on the stream.
type flight struct {
	program *streamProgram
	end     uint64
}

// What a stream was measured to hold behind a closed gate before the next
// submission blocks its caller, on an H200 with driver 580: commands, whatever
// each of them is, and copies in batches or slices of windows. Prepared copies
// hold at most half of each; puts hold the other half.
const (
	streamCommands = 1020
	streamBatched  = 24000
	streamMargin   = 10 // commands that opening's probes use
)

func newStreamHardware(dev hip.CopyDevice, name, engine string, fault func(error)) (Hardware, error) {
	h := &streamHardware{engine: engine, fault: fault}
	var err error
	h.stream, err = dev.NewCopyStream(name, func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.fail(err)
	})
	return h, err
}

func (h *streamHardware) Limits() Limits {
	const half = streamCommands / 2
	return Limits{Unit: "commands", Capacity: streamCommands, Prepared: half, Puts: half - streamMargin, Batched: streamBatched / 2}
}

func (h *streamHardware) Engine() string { return h.engine }

// streamProgram is a chain as the driver takes it.
type streamProgram struct {
	chain   hip.CopyChain
	round   uint32
	copies  int
	bytes   int64
	signals []uint64 // words that grow by 1 when the chain is done
}

func (p *streamProgram) Cost() int64           { return p.chain.Commands() }
func (p *streamProgram) Batched() int64        { return p.chain.Batched() }
func (p *streamProgram) SetRound(round uint32) { p.round = round }
func (p *streamProgram) Copies() int           { return p.copies }
func (p *streamProgram) Bytes() int64          { return p.bytes }

// Compile implements Hardware. A stream can store a round but not add, so a
// signal that is not a plan's must be the chain's last: it is added to by the
// host when the chain is done.
func (h *streamHardware) Compile(c Chain) (Program, error) {
	p := &streamProgram{}
	steps := make([]hip.CopyStep, len(c))
	for i, s := range c {
		o := &steps[i]
		o.Gate, o.Anywhere = s.Gate, !s.Rounds
		switch {
		case s.Rounds:
			o.Signal = s.Signal
		case s.Signal != 0 && i < len(c)-1:
			return nil, fmt.Errorf("copyengine: step %d of a chain of %d counts at a signal of its own, which a stream can only do behind its last step", i, len(c))
		case s.Signal != 0:
			p.signals = append(p.signals, s.Signal)
		}
		if s.Began != 0 || s.Ended != 0 || s.Arrived != 0 {
			return nil, errors.New("copyengine: streams have no clock to stamp with")
		}
		o.Lines, o.Windows = merge(s.Copies)
		p.copies += len(s.Copies)
		for _, cp := range s.Copies {
			p.bytes += cp.Width * cp.Height
		}
	}
	var err error
	p.chain, err = h.stream.Build(steps)
	return p, err
}

// Append implements Hardware. A position is taken only by Ring.
func (h *streamHardware) Append(p Program) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0, h.err
	}
	h.pending = append(h.pending, p.(*streamProgram))
	return h.position + uint64(len(h.pending)), nil
}

// Ring implements Hardware.
func (h *streamHardware) Ring() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	torn := false
	for len(h.pending) > 0 {
		p := h.pending[0]
		sent, err := h.stream.Submit(p.chain, p.round, h.position+1)
		if err != nil {
			if torn = torn || sent > 0; torn {
				h.fail(err)
				return fmt.Errorf("%w: %w", ErrTorn, err)
			}
			return err
		}
		torn = true
		h.position++
		h.pending = h.pending[1:]
		h.under = append(h.under, flight{p, h.position})
		h.promise(len(p.signals))
	}
	h.pending = nil
	return nil
}

func (h *streamHardware) Rollback() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = nil
}

func (h *streamHardware) Passed() uint64 {
	h.settle()
	return h.passed.Load()
}

func (h *streamHardware) Watch(w *hip.Waiter) {
	w.Watch(h.stream.Passed())
	w.Watch(&h.passed)
}

// settle does what is left to do for programs that the stream has passed.
func (h *streamHardware) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.stream.Passed().Load()
	for len(h.under) > 0 && h.under[0].end <= at && h.err == nil {
		p := h.under[0].program
		for _, addr := range p.signals {
			h.signals--
			if err := h.stream.Add(addr, 1); err != nil {
				h.fail(err)
				return
			}
		}
		h.stats.Copies += uint64(p.copies)
		h.stats.Bytes += uint64(p.bytes)
		h.passed.Store(h.under[0].end)
		h.under = h.under[1:]
	}
	if len(h.under) == 0 {
		h.under = nil
	}
}

// promise has n signals given, whether anybody looks at the queue or not. It is
// called under the lock.
func (h *streamHardware) promise(n int) {
	h.signals += n
	if h.signals > 0 && !h.signaling {
		h.signaling = true
		h.signalers.Go(h.signal)
	}
}

// signal settles the queue until all signals are given.
func (h *streamHardware) signal() {
	w := hip.NewWaiter()
	h.Watch(w)
	defer w.Unwatch()
	for {
		h.settle()
		h.mu.Lock()
		h.signaling = h.signals > 0 && h.err == nil
		goes := h.signaling
		h.mu.Unlock()
		if !goes {
			return
		}
		_ = w.Park(context.Background()) // which does not end
	}
}

// fail makes the queue faulty. It is called under the lock.
func (h *streamHardware) fail(err error) {
	if h.err == nil {
		h.err = err
		h.passed.Add(0) // wakes who waits
		h.fault(err)
	}
}

// Probe implements Hardware: an empty chain ends with the write of its
// position.
func (h *streamHardware) Probe(ctx context.Context) error {
	p, err := h.Compile(nil)
	if err != nil {
		return err
	}
	end, err := h.Append(p)
	if err != nil {
		return err
	}
	if err := h.Ring(); err != nil {
		return err
	}
	return h.await(ctx, end)
}

// await waits until the stream has passed a position, or has failed.
func (h *streamHardware) await(ctx context.Context, position uint64) error {
	w := hip.NewWaiter()
	h.Watch(w)
	defer w.Unwatch()
	for h.Passed() < position {
		h.mu.Lock()
		err := h.err
		h.mu.Unlock()
		if err != nil {
			return err
		}
		if err := w.Park(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (h *streamHardware) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

// closePatience is how long Close waits for what is on the stream: nothing can
// take it back, and it would touch memory that is somebody else's by then.
// Whoever closes a queue has opened every gate on it.
const closePatience = 2 * time.Second

// Close implements Hardware.
func (h *streamHardware) Close() {
	h.mu.Lock()
	end := h.position
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if err := h.await(ctx, end); err != nil {
		h.mu.Lock()
		h.err = err // nothing is done for what comes later
		h.mu.Unlock()
		h.passed.Add(0)
	}
	h.signalers.Wait()
	_ = h.stream.Close() // what still runs was named by who waited for it
}
