package copyengine

import (
	"context"
	"sync/atomic"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

// ringHardware is a queue whose engine takes SDMA packets from a ring. Where
// the ring comes from, how its doorbell is rung and who executes the packets is
// its ringEngine's; the ring, its packets and its rules are the same for all.
type ringHardware struct {
	queue   *Queue
	engine  ringEngine
	parts   ringParts
	ring    *sdma.Ring
	tally   tally
	failure atomic.Pointer[error] // why the engine has stopped
	stopped hip.Word              // 1 once it has
}

// ringEngine is the platform's part of a ringHardware.
type ringEngine interface {
	// name is for people.
	name() string
	// rung is told that the doorbell was rung.
	rung()
	// stats is what the engine counted, or what was carried as far as the ring's
	// counts tell.
	stats(carried Stats) Stats
	// close ends the engine, whatever it is doing, and frees the ring.
	close()
}

// ringParts is a ring as its platform makes it.
type ringParts struct {
	bytes       []byte
	read, write *hip.Word
	doorbell    sdma.Doorbell
	fence       *hip.Word // written by the probe
	fenceAddr   uint64
	limits      copyLimits
}

func newRing(q *Queue, e ringEngine, parts ringParts) (*ringHardware, error) {
	h := &ringHardware{queue: q, engine: e, parts: parts}
	var err error
	h.ring, err = sdma.NewRing(parts.bytes, parts.read, parts.write, parts.doorbell)
	return h, err
}

// fault is told once that the engine has stopped.
func (h *ringHardware) fault(err error) {
	h.failure.Store(&err)
	h.stopped.Store(1)
	h.queue.faulted(h.Engine(), err)
}

// putMargin is what the wrap of a ring can cost in padding: less than the
// largest packet each time, and what is in flight wraps at most once.
const putMargin = 2 * sdma.WindowBytes

// Limits is half of the ring for prepared copies; the other half covers
// padding and the puts queued before them.
func (h *ringHardware) Limits() Limits {
	half := h.ring.Size() / 2
	return Limits{Unit: "bytes", Capacity: h.ring.Size(), Prepared: half, Puts: half - putMargin}
}

// probeValue is what the fence of a probe writes.
const probeValue = 0x51c0de

func (h *ringHardware) Probe(ctx context.Context) error {
	p := new(sdma.Program)
	if err := p.Fence(h.parts.fenceAddr, probeValue); err != nil {
		return err
	}
	if _, err := h.Append(ringProgram{p}); err != nil {
		return err
	}
	if err := h.Ring(); err != nil {
		return err
	}
	w := hip.NewWaiter()
	w.Watch(h.parts.fence)
	w.Watch(&h.stopped)
	defer w.Unwatch()
	for h.parts.fence.LoadHalf(0) != probeValue {
		if err := h.failure.Load(); err != nil {
			return *err
		}
		if err := w.Park(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (h *ringHardware) Engine() string { return h.engine.name() }

func (h *ringHardware) Compile(c Chain) (Program, error) {
	p := new(sdma.Program)
	for i := range c {
		if err := c[i].encode(p, h.parts.limits); err != nil {
			return nil, err
		}
	}
	return ringProgram{p}, nil
}

// encode appends the step's packets.
func (s *Step) encode(p *sdma.Program, limits copyLimits) error {
	if s.Gate != 0 {
		if err := p.Poll(s.Gate, 0); err != nil {
			return err
		}
	}
	stamp := func(addr uint64) error {
		if addr == 0 {
			return nil
		}
		return p.Timestamp(addr)
	}
	if err := stamp(s.Began); err != nil {
		return err
	}
	for _, whole := range s.Copies {
		if err := limits.split(whole, func(c Copy) error {
			return p.Copy(c.Src, c.Dst, c.Width, c.Height, c.SrcPitch, c.DstPitch)
		}); err != nil {
			return err
		}
	}
	if err := stamp(s.Ended); err != nil {
		return err
	}
	if s.Signal != 0 {
		if err := p.Signal(s.Signal, 1); err != nil {
			return err
		}
	}
	return stamp(s.Arrived)
}

type ringProgram struct{ *sdma.Program }

func (p ringProgram) Cost() int64    { return p.Program.Bytes() }
func (p ringProgram) Bytes() int64   { return p.CopyBytes() }
func (p ringProgram) Batched() int64 { return 0 }

func (h *ringHardware) Append(p Program) (uint64, error) {
	from := h.ring.Written()
	end, err := h.ring.Append(p.(ringProgram).Program)
	if err == nil {
		h.tally.append(end, p)
		h.show(from, end)
	}
	return end, err
}

// show shows a test what was written.
func (h *ringHardware) show(from, end uint64) {
	see := h.queue.node.cfg.Written
	for see != nil && from < end {
		place := from & uint64(h.ring.Size()-1)
		p, err := sdma.Decode(h.parts.bytes[place:])
		if err != nil {
			return // what is written is packets
		}
		see(h.queue.key.from, h.queue.key.to, from, &p)
		from += uint64(p.Size)
	}
}

func (h *ringHardware) Ring() error {
	h.tally.ring(h.Passed())
	h.ring.Ring()
	h.engine.rung()
	return nil
}

func (h *ringHardware) Rollback() {
	h.tally.rollback()
	h.ring.Rollback()
}

func (h *ringHardware) Passed() uint64      { return h.parts.read.Load() }
func (h *ringHardware) Watch(w *hip.Waiter) { w.Watch(h.parts.read) }
func (h *ringHardware) Stats() Stats        { return h.engine.stats(h.tally.carried(h.Passed())) }
func (h *ringHardware) Close()              { h.engine.close() }
