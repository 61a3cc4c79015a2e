package softengine

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		_ = os.RemoveAll(handoverDir)
		os.Exit(status)
	}))
}

// rig is one queue: a ring, its engine, and memory of n bytes for its packets.
type rig struct {
	t      testing.TB
	mem    *hip.Memory
	ring   *sdma.Ring
	bytes  []byte
	read   *hip.Word
	bell   *hip.Word
	engine *Engine

	faulted chan error // what Fault was called with
}

// newRig starts a queue whose counts begin at first. adjust, if not nil,
// changes its engine before that runs.
func newRig(t testing.TB, memory int64, ring int, first uint64, adjust func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, mem: alloc(t, memory), bytes: alloc(t, int64(ring)).Bytes(0, int64(ring)), read: new(hip.Word), bell: new(hip.Word), faulted: make(chan error, 2)}
	write := new(hip.Word)
	for _, w := range []*hip.Word{r.read, r.bell, write} {
		w.Store(first)
	}
	var err error
	if r.ring, err = sdma.NewRing(r.bytes, r.read, write, sdma.WordDoorbell{Word: r.bell}); err != nil {
		t.Fatal(err)
	}
	r.engine = newEngine(Config{Ring: r.bytes, Read: r.read, Doorbell: r.bell, Fault: func(err error) { r.faulted <- err }})
	if adjust != nil {
		adjust(r)
	}
	go r.engine.run()
	t.Cleanup(r.engine.Stop)
	return r
}

func alloc(t testing.TB, n int64) *hip.Memory {
	t.Helper()
	p, err := hip.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return m
}

// addr is the address of the rig's memory at off.
func (r *rig) addr(off int64) uint64 { return r.mem.Addr() + uint64(off) }

// submit appends what add puts into a program, rings, and returns the count
// at its end.
func (r *rig) submit(add ...func(*sdma.Program) error) uint64 {
	r.t.Helper()
	var p sdma.Program
	for _, f := range add {
		if err := f(&p); err != nil {
			r.t.Fatal(err)
		}
	}
	end, err := r.ring.Append(&p)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ring.Ring()
	return end
}

// raw rings bytes that no ring would have written.
func (r *rig) raw(b []byte) {
	at := r.bell.Load()
	for i, v := range b {
		r.bytes[(at+uint64(i))&uint64(len(r.bytes)-1)] = v
	}
	r.bell.Store(at + uint64(len(b)))
}

// deadline is how long a test waits for what must happen.
const deadline = 20 * time.Second

// drained waits until the engine has read up to end.
func (r *rig) drained(end uint64) {
	r.t.Helper()
	r.until(r.read, func(v uint64) bool { return v >= end })
}

// until waits for a word, and fails the test on a fault.
func (r *rig) until(w *hip.Word, ready func(uint64) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := hip.NewWaiter().Await(ctx, w, ready, nil); err != nil {
		r.t.Fatalf("%v; the engine has read %d of %d, fault: %v", err, r.read.Load(), r.bell.Load(), r.engine.Err())
	}
}

// fault waits for the queue's fault.
func (r *rig) fault() *FaultError {
	r.t.Helper()
	select {
	case err := <-r.faulted:
		f, ok := err.(*FaultError)
		if !ok {
			r.t.Fatalf("the fault is a %T: %v", err, err)
		}
		return f
	case <-time.After(deadline):
		r.t.Fatalf("no fault; the engine has read %d of %d", r.read.Load(), r.bell.Load())
		return nil
	}
}

// parked waits until the engine waits at a closed gate: Waits counts it.
func (r *rig) parked(waits uint64) {
	r.t.Helper()
	for start := time.Now(); r.engine.Stats().Waits < waits; {
		if time.Since(start) > deadline {
			r.t.Fatal("the engine does not wait")
		}
		runtime.Gosched()
	}
}

func poll(addr uint64, ref uint32) func(*sdma.Program) error {
	return func(p *sdma.Program) error { return p.Poll(addr, ref) }
}

func linear(src, dst uint64, n int64) func(*sdma.Program) error {
	return func(p *sdma.Program) error { return p.Copy(src, dst, n, 1, n, n) }
}

func signal(addr uint64, add uint64) func(*sdma.Program) error {
	return func(p *sdma.Program) error { return p.Signal(addr, add) }
}

func fence(addr uint64, v uint32) func(*sdma.Program) error {
	return func(p *sdma.Program) error { return p.Fence(addr, v) }
}
