package softengine

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func TestAtomicsAndFencesChangeTheirWordAndNothingElse(t *testing.T) {
	const before = 0x11111111_22222222
	for name, c := range map[string]struct {
		off  int64
		op   sdma.AtomicOp // 0: a fence
		v    []uint64
		want uint64
	}{
		"fence low":                 {0, 0, []uint64{7}, 0x11111111_00000007},
		"fence high":                {4, 0, []uint64{7}, 0x00000007_22222222},
		"add 64 carries":            {0, sdma.Add64, []uint64{0xffffffff}, 0x11111112_22222221},
		"add 64 wraps":              {0, sdma.Add64Silent, []uint64{math.MaxUint64}, before - 1},
		"add 32 low does not carry": {0, sdma.Add32, []uint64{0xffffffff}, 0x11111111_22222221},
		"add 32 high":               {4, sdma.Add32Silent, []uint64{0xf0000000}, 0x01111111_22222222},
		"swap 64":                   {0, sdma.CompareSwap64, []uint64{9, before}, 9},
		"swap 64 of another":        {0, sdma.CompareSwap64Silent, []uint64{9, before + 1}, before},
		"swap 32 low":               {0, sdma.CompareSwap32, []uint64{9, 0x22222222}, 0x11111111_00000009},
		"swap 32 high":              {4, sdma.CompareSwap32Silent, []uint64{9, 0x11111111}, 0x00000009_22222222},
		"swap 32 of another":        {4, sdma.CompareSwap32, []uint64{9, 0x22222222}, before},
	} {
		r := newRig(t, 4096, 4096, 0, nil)
		for off := int64(0); off < 64; off += 8 {
			r.mem.Word(off).Store(before)
		}
		var b []byte
		var err error
		if c.op == 0 {
			b, err = sdma.AppendFence(b, r.addr(8+c.off), uint32(c.v[0]))
		} else {
			b, err = sdma.AppendAtomic(b, c.op, r.addr(8+c.off), c.v...)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.raw(b)
		r.drained(uint64(len(b)))
		for off := int64(0); off < 64; off += 8 {
			want := uint64(before)
			if off == 8 {
				want = c.want
			}
			if got := r.mem.Word(off).Load(); got != want {
				t.Errorf("%s: the word at %d is %#x, want %#x", name, off, got, want)
			}
		}
	}
}

func TestTimestampsOfAllQueuesAreOfOneClockThatRises(t *testing.T) {
	a, b := newRig(t, 4096, 4096, 0, nil), newRig(t, 4096, 4096, 0, nil)
	last := uint64(0)
	for range 10 {
		for _, r := range []*rig{a, b} {
			p, err := sdma.AppendTimestamp(nil, r.addr(0))
			if err != nil {
				t.Fatal(err)
			}
			r.raw(p)
			r.drained(r.bell.Load())
			if v := r.mem.Word(0).Load(); v <= last {
				t.Fatalf("the clock went from %d to %d", last, v)
			} else {
				last = v
			}
		}
	}
}

func TestNopsAndTrapsArePassed(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	b, err := sdma.AppendNOP(nil, 400)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = sdma.AppendTrap(b, 5); err != nil {
		t.Fatal(err)
	}
	if b, err = sdma.AppendFence(b, r.addr(0), 77); err != nil {
		t.Fatal(err)
	}
	r.raw(b)
	r.drained(uint64(len(b)))
	if v := r.mem.Word(0).Load(); v != 77 {
		t.Errorf("the fence behind them left %d", v)
	}
}

func TestTheReadCountAdvancesPacketByPacket(t *testing.T) {
	var seen []uint64
	r := newRig(t, 4096, 4096, 0, func(r *rig) {
		e := r.engine
		e.config.Intercept = func(at uint64, p *sdma.Packet) error {
			if read := e.config.Read.Load(); read != at {
				t.Errorf("%v lies at %d, the read count is %d", p, at, read)
			}
			seen = append(seen, at)
			return nil
		}
	})
	r.drained(r.submit(fence(r.addr(0), 1), signal(r.addr(0), 1), linear(r.addr(64), r.addr(128), 64)))
	r.engine.Stop()
	if want := []uint64{0, sdma.FenceBytes, sdma.FenceBytes + sdma.AtomicBytes}; len(seen) != 3 || seen[1] != want[1] || seen[2] != want[2] {
		t.Errorf("packets were executed at %v, want %v", seen, want)
	}
	if s := r.engine.Stats(); s != (Stats{Packets: 3, Copies: 1, Bytes: 64}) {
		t.Errorf("stats are %+v", s)
	}
}

func TestAPacketThatInterceptFailsFaultsTheQueue(t *testing.T) {
	broken := errors.New("broken on purpose")
	r := newRig(t, 4096, 4096, 0, func(r *rig) {
		e := r.engine
		e.config.Intercept = func(at uint64, p *sdma.Packet) error {
			if p.Op == sdma.OpCopyLinear {
				return broken
			}
			return nil
		}
	})
	r.submit(fence(r.addr(0), 7), linear(r.addr(64), r.addr(128), 64), fence(r.addr(0), 8))
	fault := r.fault()
	if !errors.Is(fault, broken) || fault.At != sdma.FenceBytes || fault.Packet.Op != sdma.OpCopyLinear {
		t.Errorf("fault %v", fault)
	}
	if v := r.mem.Word(0).Load(); v != 7 {
		t.Errorf("the fences left %d, want that of the first", v)
	}
}

func TestStopEndsAnIdleAParkedACopyingAndAFaultedEngine(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		r := newRig(t, 4096, 4096, 0, nil)
		r.drained(r.submit(fence(r.addr(0), 1)))
		r.engine.Stop()
		r.submit(fence(r.addr(0), 2))
		if v := r.mem.Word(0).Load(); v != 1 || r.engine.Err() != nil {
			t.Errorf("a stopped engine left %d, error %v", v, r.engine.Err())
		}
	})
	t.Run("parked", func(t *testing.T) {
		r := newRig(t, 4096, 4096, 0, nil)
		r.submit(poll(r.addr(0), 1), fence(r.addr(8), 1))
		r.parked(1)
		r.engine.Stop()
		r.mem.Word(0).Store(1)
		if r.mem.Word(8).Load() != 0 || r.read.Load() != 0 || r.engine.Err() != nil {
			t.Errorf("it went on to %d, error %v", r.read.Load(), r.engine.Err())
		}
	})
	t.Run("copying", func(t *testing.T) {
		const n = 64 << 20
		pieces, started := 0, make(chan struct{})
		r := newRig(t, 2*n, 4096, 0, func(r *rig) {
			e := r.engine
			e.yield = func() {
				if pieces++; pieces == 3 {
					close(started)
					for !e.stopping.Load() {
						runtime.Gosched()
					}
				}
			}
		})
		r.submit(linear(r.addr(0), r.addr(n), n))
		<-started
		r.engine.Stop()
		if pieces != 3 || r.read.Load() != 0 || r.engine.Err() != nil {
			t.Errorf("it copied %d pieces, %d behind Stop; error %v", pieces, pieces-3, r.engine.Err())
		}
	})
	t.Run("faulted", func(t *testing.T) {
		r := newRig(t, 4096, 4096, 0, nil)
		r.submit(fence(8, 1))
		r.fault()
		r.engine.Stop()
		r.engine.Stop()
		if r.engine.Err() == nil {
			t.Error("Stop forgot the fault")
		}
	})
}

func TestAnEngineThatWaitsHoldsNoMemoryButItsGates(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	src, dst, gate := alloc(t, 4096), alloc(t, 4096), alloc(t, 4096)
	end := r.submit(linear(src.Addr(), dst.Addr(), 64), fence(dst.Addr()+64, 3), poll(gate.Addr(), 1))
	r.parked(1)
	for _, m := range []*hip.Memory{src, dst, gate} {
		m.Free()
	}
	// What it held for the packets before goes within the spin before it parks.
	gone(t, src)
	gone(t, dst)
	if !gate.Hold() {
		t.Fatal("the memory of the gate that it waits at went")
	}
	gate.Word(0).Store(1)
	gate.Release()
	r.drained(end)
	gone(t, gate)
}

// gone waits until nobody holds m.
func gone(t *testing.T, m *hip.Memory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for m.Hold() {
		m.Release()
		if ctx.Err() != nil {
			t.Fatal("freed memory is still held")
		}
	}
}

func TestFreedMemoryIsOutOfReachAtOnce(t *testing.T) {
	mem := make(chan *hip.Memory, 1)
	r := newRig(t, 4096, 4096, 0, func(r *rig) {
		e := r.engine
		e.config.Intercept = func(at uint64, p *sdma.Packet) error {
			if at > 0 {
				(<-mem).Free() // between two packets that reach it
			}
			return nil
		}
	})
	m := alloc(t, 4096)
	mem <- m
	r.submit(fence(m.Addr(), 1), fence(m.Addr(), 2))
	var address *hip.AddressError
	if fault := r.fault(); !errors.As(fault, &address) || fault.At != sdma.FenceBytes {
		t.Errorf("fault %v, want an AddressError at the second packet", fault)
	}
}

func TestAnEngineRefusesARingItCannotFollow(t *testing.T) {
	odd := new(hip.Word)
	odd.Store(6)
	for name, c := range map[string]Config{
		"small ring":  {Ring: make([]byte, 2048), Read: new(hip.Word), Doorbell: new(hip.Word)},
		"odd ring":    {Ring: make([]byte, 5000), Read: new(hip.Word), Doorbell: new(hip.Word)},
		"no read":     {Ring: make([]byte, 4096), Doorbell: new(hip.Word)},
		"no doorbell": {Ring: make([]byte, 4096), Read: new(hip.Word)},
		"odd count":   {Ring: make([]byte, 4096), Read: odd, Doorbell: new(hip.Word)},
	} {
		e, err := Start(c)
		var config *ConfigError
		if !errors.As(err, &config) {
			t.Errorf("%s: error %v, want a ConfigError", name, err)
		}
		if e != nil {
			e.Stop()
		}
	}
}

func TestStartFollowsARingFromItsReadCount(t *testing.T) {
	m := alloc(t, 4096)
	read, write, bell := new(hip.Word), new(hip.Word), new(hip.Word)
	read.Store(8200)
	write.Store(8200)
	buf := make([]byte, 4096)
	bell.Store(8200)
	ring, err := sdma.NewRing(buf, read, write, sdma.WordDoorbell{Word: bell})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Start(Config{Ring: buf, Read: read, Doorbell: bell})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	var p sdma.Program
	m.Bytes(0, 3)[1] = 9
	if err := errors.Join(p.Copy(m.Addr(), m.Addr()+100, 3, 1, 3, 3), p.Signal(m.Addr()+8, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Append(&p); err != nil {
		t.Fatal(err)
	}
	ring.Ring()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := hip.NewWaiter().Await(ctx, m.Word(8), func(v uint64) bool { return v == 4 }, nil); err != nil {
		t.Fatalf("%v; error %v", err, e.Err())
	}
	if !bytes.Equal(m.Bytes(100, 3), []byte{0, 9, 0}) {
		t.Errorf("copied %v", m.Bytes(100, 3))
	}
}
