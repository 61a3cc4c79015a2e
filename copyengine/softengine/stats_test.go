package softengine

import (
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
)

func TestDeliveryIsTimedFromTheWriteThatOpensTheGateToTheSignal(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	gate, sig := r.mem.Word(0), r.mem.Word(8)
	const held = 20 * time.Millisecond
	end := r.submit(poll(r.addr(0), 2), linear(r.addr(1024), r.addr(2048), 512), signal(r.addr(8), 1))
	r.parked(1)
	gate.Store(1) // opens nothing, and must not count as the trigger
	for began := hip.Clock(); time.Duration(hip.Clock()-began) < held; {
		r.parked(1)
	}
	opened := hip.Clock()
	gate.Store(2)
	r.until(sig, func(v uint64) bool { return v == 1 })
	r.drained(end)
	most := time.Duration(hip.Clock() - opened)

	s := r.engine.Stats()
	if n := s.Delivery.Count(); n != 1 || s.Delivery.Sum <= 0 || s.Delivery.Sum > most {
		t.Errorf("%d deliveries that took %v together; there was one, and it took at most %v", n, s.Delivery.Sum, most)
	}
	if n := s.GateWait.Count(); n != 1 || s.GateWait.Sum < held || s.GateWait.Sum > s.Waited {
		t.Errorf("%d waits of %v together; there was one of at least %v, and %v were waited in all", n, s.GateWait.Sum, held, s.Waited)
	}
}

func TestAChunkWhoseGateIsOpenIsTimedFromWhenTheEngineComesToIt(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	r.mem.Word(0).Store(1)
	began := hip.Clock()
	r.drained(r.submit(
		poll(r.addr(0), 1), linear(r.addr(1024), r.addr(2048), 512), signal(r.addr(8), 1),
		poll(r.addr(0), 1), linear(r.addr(1024), r.addr(3072), 512), signal(r.addr(8), 1),
		signal(r.addr(16), 1), // behind no gate: nothing to time
	))
	most := time.Duration(hip.Clock() - began)
	s := r.engine.Stats()
	if n := s.Delivery.Count(); n != 2 || s.Delivery.Sum <= 0 || s.Delivery.Sum > most {
		t.Errorf("%d deliveries that took %v together; there were two, one after the other in %v", n, s.Delivery.Sum, most)
	}
	if n := s.GateWait.Count(); n != 0 {
		t.Errorf("%d waits at gates that were open", n)
	}
}

// TestWhoASignalWakesGoesFirstAndFindsItCounted looks at what stands when the
// engine gives way.
func TestWhoASignalWakesGoesFirstAndFindsItCounted(t *testing.T) {
	type moment struct {
		read  uint64
		stats Stats
	}
	seen := make(chan moment, 8)
	r := newRig(t, 1<<16, 4096, 0, func(r *rig) {
		r.engine.yield = func() { seen <- moment{r.read.Load(), r.engine.Stats()} }
	})
	step := func(first uint64) uint64 {
		return r.submit(poll(r.addr(0), 0), linear(r.addr(4096), r.addr(8192), 1000), signal(r.addr(64), first))
	}
	r.drained(step(1)) // nobody waits for it
	w := hip.NewWaiter()
	w.Watch(r.mem.Word(64))
	defer w.Unwatch()
	end := step(1)
	r.drained(end)
	if err := w.Park(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.engine.Stop()
	if len(seen) != 1 {
		t.Fatalf("it has given way %d times, want once", len(seen))
	}
	m := <-seen
	if m.read != end || m.stats.Packets != 6 || m.stats.Delivery.Count() != 2 {
		t.Errorf("at the yield %d bytes of %d are read, %d packets and %d deliveries counted, want all of 6 and 2", m.read, end, m.stats.Packets, m.stats.Delivery.Count())
	}
}
