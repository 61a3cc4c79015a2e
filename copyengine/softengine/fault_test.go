package softengine

import (
	"errors"
	"math"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func TestABadPacketFaultsItsQueueAndNothingElse(t *testing.T) {
	const mem = 8192
	good := newRig(t, mem, 4096, 0, nil)
	var addr *hip.AddressError
	inAddr := func(err error) bool { return errors.As(err, &addr) }
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for name, c := range map[string]struct {
		packet func(r *rig) ([]byte, error)
		want   func(error) bool
	}{
		"source outside":          {func(r *rig) ([]byte, error) { return sdma.AppendCopyLinear(nil, 4096, r.addr(0), 8) }, inAddr},
		"destination outside":     {func(r *rig) ([]byte, error) { return sdma.AppendCopyLinear(nil, r.addr(0), 4096, 8) }, inAddr},
		"source that leaves":      {func(r *rig) ([]byte, error) { return sdma.AppendCopyLinear(nil, r.addr(mem-7), r.addr(0), 8) }, inAddr},
		"destination that leaves": {func(r *rig) ([]byte, error) { return sdma.AppendCopyLinear(nil, r.addr(0), r.addr(mem-1), 1<<30) }, inAddr},
		"source at the top":       {func(r *rig) ([]byte, error) { return sdma.AppendCopyLinear(nil, math.MaxUint64, r.addr(0), 1<<30) }, inAddr},
		"last row that leaves": {func(r *rig) ([]byte, error) {
			return sdma.AppendCopyWindow(nil, sdma.Window{Src: r.addr(0), Dst: r.addr(64), SrcPitch: 1024, DstPitch: 1024, Width: 64, Height: 9})
		}, inAddr},
		"rows without end": {func(r *rig) ([]byte, error) {
			return sdma.AppendCopyWindow(nil, sdma.Window{Src: r.addr(0), Dst: r.addr(64), SrcPitch: 1 << 30, DstPitch: 1 << 30, Width: 1 << 30, Height: 1 << 32})
		}, inAddr},
		"rows past the address space": {func(r *rig) ([]byte, error) {
			b, err := sdma.AppendCopyWindow(nil, sdma.Window{Src: r.addr(0), Dst: r.addr(64), SrcPitch: 64, DstPitch: 64, Width: 32, Height: 2})
			for _, field := range []int{6, 14, 17, 18} { // pitches, width, height
				copy(b[4*field:], []byte{0xff, 0xff, 0xff, 0xff})
			}
			return b, err
		}, is(sdma.ErrMalformed)},
		"fence outside":     {func(r *rig) ([]byte, error) { return sdma.AppendFence(nil, 4096, 1) }, inAddr},
		"signal outside":    {func(r *rig) ([]byte, error) { return sdma.AppendAtomic(nil, sdma.Add64, 4096, 1) }, inAddr},
		"timestamp outside": {func(r *rig) ([]byte, error) { return sdma.AppendTimestamp(nil, 0) }, inAddr},
		"poll outside":      {func(r *rig) ([]byte, error) { return sdma.AppendPoll(nil, sdma.Poll{Addr: 64, Func: sdma.Always}) }, inAddr},
		"no packet":         {func(r *rig) ([]byte, error) { return []byte{0x77, 0, 0, 0}, nil }, is(sdma.ErrUnknown)},
		"half a packet":     {func(r *rig) ([]byte, error) { b, err := sdma.AppendFence(nil, r.addr(0), 1); return b[:8], err }, is(sdma.ErrTruncated)},
	} {
		r := newRig(t, mem, 4096, 0, nil)
		before, err := sdma.AppendFence(nil, r.addr(0), 7)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := c.packet(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.raw(append(before, bad...))
		fault := r.fault()
		if !c.want(fault) {
			t.Errorf("%s: fault %v", name, fault)
		}
		if fault.At != sdma.FenceBytes || r.read.Load() != sdma.FenceBytes {
			t.Errorf("%s: fault at %d, read up to %d", name, fault.At, r.read.Load())
		}
		if r.mem.Word(0).Load() != 7 || r.mem.Word(64).Load() != 0 {
			t.Errorf("%s: the words are %d and %d", name, r.mem.Word(0).Load(), r.mem.Word(64).Load())
		}
		r.bell.Add(sdma.FenceBytes)
		r.engine.Stop()
		if len(r.faulted) != 0 || r.engine.Err() != error(fault) {
			t.Errorf("%s: %d faults more; Err is %v", name, len(r.faulted), r.engine.Err())
		}
		good.drained(good.submit(signal(good.addr(0), 1)))
	}
	if good.engine.Err() != nil {
		t.Errorf("the other queue: %v", good.engine.Err())
	}
}

func TestAPacketThatStraddlesTheEndIsAFault(t *testing.T) {
	r := newRig(t, 4096, 4096, 2*4096-8, nil)
	b, err := sdma.AppendFence(nil, r.addr(0), 7)
	if err != nil {
		t.Fatal(err)
	}
	r.raw(b)
	if fault := r.fault(); !errors.Is(fault, sdma.ErrTruncated) || fault.At != 2*4096-8 {
		t.Errorf("fault %v", fault)
	}
	if v := r.mem.Word(0).Load(); v != 0 {
		t.Errorf("the packet left %d", v)
	}
}

func TestADoorbellThatCannotBeIsAFault(t *testing.T) {
	for name, count := range map[string]uint64{"past the ring": 8192 + 4096 + 4, "backwards": 8188, "inside a dword": 8194} {
		r := newRig(t, 4096, 4096, 8192, nil)
		r.bell.Store(count)
		if fault := r.fault(); !errors.Is(fault, ErrDoorbell) || fault.At != 8192 || fault.Packet.Size != 0 {
			t.Errorf("%s: fault %v", name, fault)
		}
		r.engine.Stop()
	}
}
