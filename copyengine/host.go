package copyengine

import (
	"context"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/copyengine/softengine"
	"github.com/triggeredplans/sluice/hip"
)

// newHardware makes q's hardware for the platform of its endpoints.
func newHardware(q *Queue) (Hardware, error) {
	make, ok := makers[q.key.from.Platform]
	if !ok {
		return nil, fmt.Errorf("copyengine: platform %q has no copy engine", q.key.from.Platform)
	}
	return make(q)
}

var makers = map[string]func(*Queue) (Hardware, error){
	"host": func(q *Queue) (Hardware, error) { return newRingHardware(q, q.dev) },
}

// ringHardware is a queue whose engine executes SDMA packets from a ring.
type ringHardware struct {
	ring   *sdma.Ring
	read   *hip.Word
	fence  *hip.Word // written by the probe
	engine *softengine.Engine
	memory []*hip.Memory // the ring, the page of its counts
}

// pointerPage is the size of the allocation that holds a queue's counts.
const pointerPage = 4096

// newRingHardware puts the ring into memory of dev, which the host reaches.
func newRingHardware(q *Queue, dev hip.Device) (Hardware, error) {
	h := &ringHardware{}
	ring, err := dev.Alloc(q.node.cfg.RingBytes)
	if err != nil {
		return nil, err
	}
	h.memory = append(h.memory, ring)
	page, err := dev.Alloc(pointerPage)
	if err != nil {
		h.free()
		return nil, err
	}
	h.memory = append(h.memory, page)
	h.read, h.fence = page.Word(0), page.Word(192)
	doorbell := page.Word(128)
	bytes := ring.Bytes(0, ring.Size())
	if h.ring, err = sdma.NewRing(bytes, h.read, page.Word(64), sdma.WordDoorbell{Word: doorbell}); err != nil {
		h.free()
		return nil, err
	}
	cfg := softengine.Config{Ring: bytes, Read: h.read, Doorbell: doorbell, Fault: func(err error) { q.faulted(h.Engine(), err) }}
	if see := q.node.cfg.Intercept; see != nil {
		cfg.Intercept = func(at uint64, p *sdma.Packet) error { return see(q.key.from, q.key.to, at, p) }
	}
	if h.engine, err = softengine.Start(cfg); err != nil {
		h.free()
		return nil, err
	}
	return h, nil
}

func (h *ringHardware) free() {
	for _, m := range h.memory {
		m.Free()
	}
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
	if err := p.Fence(h.memory[1].Addr()+192, probeValue); err != nil {
		return err
	}
	if _, err := h.ring.Append(p); err != nil {
		return err
	}
	h.ring.Ring()
	return hip.NewWaiter().Await(ctx, h.fence, func(v uint64) bool { return uint32(v) == probeValue }, h.engine.Err)
}

func (h *ringHardware) Engine() string { return "software engine" }

func (h *ringHardware) Compile(c Chain) (Program, error) {
	p := new(sdma.Program)
	for i := range c {
		if err := c[i].encode(p); err != nil {
			return nil, err
		}
	}
	return ringProgram{p}, nil
}

// encode appends the step's packets.
func (s *Step) encode(p *sdma.Program) error {
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
	for _, c := range s.Copies {
		if err := p.Copy(c.Src, c.Dst, c.Width, c.Height, c.SrcPitch, c.DstPitch); err != nil {
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
	return h.ring.Append(p.(ringProgram).Program)
}
func (h *ringHardware) Ring() error         { h.ring.Ring(); return nil }
func (h *ringHardware) Rollback()           { h.ring.Rollback() }
func (h *ringHardware) Passed() uint64      { return h.read.Load() }
func (h *ringHardware) Watch(w *hip.Waiter) { w.Watch(h.read) }

func (h *ringHardware) Stats() Stats {
	s := h.engine.Stats()
	return Stats{Copies: s.Copies, Bytes: s.Bytes, GateWaits: s.Waits, GateWaited: s.Waited, GateWait: s.GateWait, Delivery: s.Delivery}
}

func (h *ringHardware) Close() {
	h.engine.Stop()
	h.free()
}
