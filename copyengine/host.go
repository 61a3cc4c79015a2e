package copyengine

import (
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
	"host": func(q *Queue) (Hardware, error) { return newHostHardware(q, q.dev) },
}

// hostEngine is a ring in a device's memory that a software engine executes.
type hostEngine struct {
	*softengine.Engine
	memory []*hip.Memory // the ring, the page of its counts
}

// pointerPage is the size of the allocation that holds a queue's counts.
const pointerPage = 4096

// newHostHardware puts the ring into memory of dev, which the host reaches.
func newHostHardware(q *Queue, dev hip.Device) (Hardware, error) {
	e := &hostEngine{}
	for _, n := range []int64{q.node.cfg.RingBytes, pointerPage} {
		m, err := dev.Alloc(n)
		if err != nil {
			e.free()
			return nil, err
		}
		e.memory = append(e.memory, m)
	}
	ring, page := e.memory[0], e.memory[1]
	doorbell := page.Word(128)
	h, err := newRing(q, e, ringParts{
		bytes: ring.Bytes(0, ring.Size()), read: page.Word(0), write: page.Word(64), doorbell: sdma.WordDoorbell{Word: doorbell},
		fence: page.Word(192), fenceAddr: page.Addr() + 192,
	})
	if err != nil {
		e.free()
		return nil, err
	}
	cfg := softengine.Config{Ring: h.parts.bytes, Read: h.parts.read, Doorbell: doorbell, Fault: h.fault}
	if see := q.node.cfg.Intercept; see != nil {
		cfg.Intercept = func(at uint64, p *sdma.Packet) error { return see(q.key.from, q.key.to, at, p) }
	}
	if e.Engine, err = softengine.Start(cfg); err != nil {
		e.free()
		return nil, err
	}
	return h, nil
}

func (e *hostEngine) free() {
	for _, m := range e.memory {
		m.Free()
	}
}

func (e *hostEngine) name() string { return "software engine" }

func (e *hostEngine) rung() {}

// stats are the engine's own.
func (e *hostEngine) stats(Stats) Stats {
	s := e.Stats()
	return Stats{Copies: s.Copies, Bytes: s.Bytes, GateWaits: s.Waits, GateWaited: s.Waited, GateWait: s.GateWait, Delivery: s.Delivery}
}

func (e *hostEngine) close() {
	e.Stop()
	e.free()
}
