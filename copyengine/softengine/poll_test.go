package softengine

import (
	"errors"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

func TestAClosedGateBlocksItsOwnQueueAndNoOther(t *testing.T) {
	a, b := newRig(t, 4096, 4096, 0, nil), newRig(t, 4096, 4096, 0, nil)
	end := a.submit(signal(a.addr(8), 1), poll(a.addr(0), 5), signal(a.addr(8), 1))
	a.parked(1)
	for round := uint64(1); round <= 100; round++ {
		b.drained(b.submit(poll(b.addr(0), 0), signal(b.addr(8), 1)))
	}
	if n := b.mem.Word(8).Load(); n != 100 {
		t.Errorf("the other queue signalled %d times, want 100", n)
	}
	for _, closed := range []uint64{4, 1 << 32} { // the low half counts, and it is below 5
		a.mem.Word(0).Store(closed)
		if n, at := a.mem.Word(8).Load(), a.read.Load(); n != 1 || at != sdma.AtomicBytes {
			t.Errorf("behind the closed gate: %d signals, %d bytes read", n, at)
		}
	}
	a.mem.Word(0).Store(5)
	a.drained(end)
	if n := a.mem.Word(8).Load(); n != 2 {
		t.Errorf("behind the open gate: %d signals, want 2", n)
	}
	s := a.engine.Stats()
	if s.Packets != 3 || s.Waits != 1 || s.Waited <= 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestAPollComparesItsHalfOfTheWordUnderTheMask(t *testing.T) {
	for _, half := range []int{0, 1} {
		for f := sdma.Always; f <= sdma.Greater; f++ {
			for _, v := range []uint32{4, 5, 6, 0x80000005, 0xffff0004} {
				p := sdma.Poll{Func: f, Ref: 5, Mask: 0x8000ffff, Retries: 2}
				r := newRig(t, 4096, 4096, 0, nil)
				p.Addr = r.addr(int64(64 + 4*half))
				r.mem.Word(64).Store(^uint64(0)) // the other half would mislead
				r.mem.Word(64).StoreHalf(half, v)
				b, err := sdma.AppendPoll(nil, p)
				if err != nil {
					t.Fatal(err)
				}
				r.raw(b)
				if p.Holds(v) {
					r.drained(sdma.PollBytes)
				} else if fault := r.fault(); !errors.Is(fault, ErrRetries) || fault.At != 0 || fault.Packet.Poll != p {
					t.Errorf("half %d of %#x %v 5: fault %v, want retries that ran out", half, v, f, fault)
				}
				r.engine.Stop()
			}
		}
	}
}

func TestAGateInTheHighHalfOpensAParkedQueue(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	end := r.submit(poll(r.addr(68), 3), signal(r.addr(8), 1))
	r.parked(1)
	r.mem.Word(64).Store(9) // the low half
	r.mem.Word(64).StoreHalf(1, 3)
	r.drained(end)
}

// TestNoWakeUpIsLost has two queues open each other's gates, so that one lost
// wake-up stops both for good.
func TestNoWakeUpIsLost(t *testing.T) {
	rounds := uint32(20000)
	if testing.Short() {
		rounds = 1000
	}
	a, b := newRig(t, 4096, 4<<20, 0, nil), newRig(t, 4096, 4<<20, 0, nil)
	var pa, pb sdma.Program
	for round := uint32(1); round <= rounds; round++ {
		if err := errors.Join(pa.Poll(a.addr(0), round), pa.Signal(b.addr(0), 1), pb.Poll(b.addr(0), round), pb.Signal(a.addr(0), 1)); err != nil {
			t.Fatal(err)
		}
	}
	for r, p := range map[*rig]*sdma.Program{a: &pa, b: &pb} {
		if _, err := r.ring.Append(p); err != nil {
			t.Fatal(err)
		}
		r.ring.Ring()
	}
	a.parked(1)
	a.mem.Word(0).Add(1)
	a.drained(a.ring.Written())
	b.drained(b.ring.Written())
	if va, vb := a.mem.Word(0).Load(), b.mem.Word(0).Load(); va != uint64(rounds)+1 || vb != uint64(rounds) {
		t.Errorf("the gates are at %d and %d after %d rounds", va, vb, rounds)
	}
}

func TestTheTimeAtAClosedGateCountsWhileItLasts(t *testing.T) {
	r := newRig(t, 4096, 4096, 0, nil)
	end := r.submit(poll(r.addr(0), 1))
	r.parked(1)
	first := r.engine.Stats().Waited
	second := r.engine.Stats().Waited
	if first <= 0 || second <= first {
		t.Errorf("waited %v, then %v", first, second)
	}
	r.mem.Word(0).Store(1)
	r.drained(end)
	r.engine.Stop()
	if last := r.engine.Stats().Waited; last < second || last != r.engine.Stats().Waited {
		t.Errorf("waited %v in the end, %v before", last, second)
	}
}
