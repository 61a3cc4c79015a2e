package main

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/inject"
)

// errInjected is what injected failures wrap.
var errInjected = errors.New("injected")

// disturbance is how a bout's node is disturbed: at most one step and one way
// of seeing packets at a time.
type disturbance struct {
	strike atomic.Pointer[strike]
	packet atomic.Pointer[packetHook]
	always packetHook // or nil
}

// packetHook sees a packet before the engine of the queue between two ranks
// executes it.
type packetHook func(from, to int, p *sdma.Packet) error

// strike is a step of one rank that will fail once, in one way.
type strike struct {
	step  inject.Step
	rank  int
	way   string // "error", "panic" or "Goexit"
	after atomic.Int64
	done  atomic.Bool
}

var ways = []string{"error", "panic", "Goexit"}

func (d *disturbance) inject(step inject.Step, rank int) error {
	s := d.strike.Load()
	if s == nil || s.step != step || s.rank != rank || s.after.Add(-1) >= 0 || !s.done.CompareAndSwap(false, true) {
		return nil
	}
	switch s.way {
	case "panic":
		panic(errInjected)
	case "Goexit":
		runtime.Goexit()
	}
	return errInjected
}

func (d *disturbance) intercept(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
	if d.always != nil {
		if err := d.always(from.Device, to.Device, p); err != nil {
			return err
		}
	}
	if see := d.packet.Load(); see != nil {
		return (*see)(from.Device, to.Device, p)
	}
	return nil
}

// packets sets how packets are seen until the function that it returns is
// called.
func (d *disturbance) packets(see packetHook) (end func()) {
	d.packet.Store(&see)
	return func() { d.packet.Store(nil) }
}

// wakes is held by the bout that disturbs the process's wake-ups.
var wakes sync.Mutex
