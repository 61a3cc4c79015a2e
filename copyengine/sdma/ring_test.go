package sdma

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/hip"
)

// ringOf makes a ring of n bytes whose counts begin at first, with every byte
// set to what no packet looks like.
func ringOf(t testing.TB, n int, first uint64) *Ring {
	t.Helper()
	read, write, bell := new(hip.Word), new(hip.Word), new(hip.Word)
	read.Store(first)
	write.Store(first)
	bell.Store(first)
	r, err := NewRing(bytes.Repeat([]byte{0xee}, n), read, write, WordDoorbell{bell})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func doorbell(r *Ring) uint64 { return r.doorbell.(WordDoorbell).Word.Load() }

// between is the ring's bytes from one count to another.
func between(r *Ring, from, to uint64) []byte {
	var b []byte
	for ; from != to; from++ {
		b = append(b, r.bytes[from&uint64(len(r.bytes)-1)])
	}
	return b
}

// complete decodes what the ring holds from its read count to end, as an engine
// would, and returns the packets without padding.
func complete(t testing.TB, r *Ring, end uint64) []Packet {
	var packets []Packet
	for at := r.ReadCount(); at != end; {
		place := at & uint64(len(r.bytes)-1)
		left := min(end-at, uint64(len(r.bytes))-place)
		p, err := Decode(r.bytes[place : place+left])
		if err != nil {
			t.Fatalf("at count %d, place %d, with %d bytes to the ring's end: %v", at, place, left, err)
		}
		if p.Op != OpNOP {
			packets = append(packets, p)
		} else if place+uint64(p.Size) != uint64(len(r.bytes)) {
			t.Fatalf("padding of %d bytes at %d does not lead to the end", p.Size, place)
		}
		at += uint64(p.Size)
		r.read.Store(at)
	}
	return packets
}

// programs draws programs of up to n packets that differ from one another.
func programs(n int) *rapid.Generator[*Program] {
	return rapid.Custom(func(t *rapid.T) *Program {
		var p Program
		for range rapid.IntRange(0, n).Draw(t, "packets") {
			v := rapid.Uint64().Draw(t, "value")
			var err error
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				err = p.Poll(v&^3, uint32(v>>7))
			case 1:
				err = p.Copy(v, ^v, int64(v%MaxLinearBytes)+1, 1, 1, 1)
			case 2:
				err = p.Copy(v>>8, v>>9, 16, 4, 64, 80)
			case 3:
				err = p.Signal(v&^7, v>>3)
			case 4:
				err = p.Fence(v&^3, uint32(v>>5))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return &p
	})
}

func packetsOf(t testing.TB, p *Program) []Packet {
	var packets []Packet
	for b := p.bytes; len(b) > 0; {
		q, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, q)
		b = b[q.Size:]
	}
	return packets
}

func same(t rapid.TB, got, want []Packet) {
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("packet %d is %v, want %v", i, &got[i], &want[i])
		}
	}
}

func TestNoPacketStraddlesTheEndHoweverOftenTheRingWraps(t *testing.T) {
	var step Program
	for i := range uint64(3) {
		if err := errors.Join(step.Poll(64*i, 1), step.Copy(i, i, 16, 4, 64, 80), step.Copy(i, i, 100, 1, 1, 1), step.Signal(8*i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	r := ringOf(t, MinRingBytes, 0)
	for round := uint32(1); r.Written() < 3000*MinRingBytes; round++ {
		step.SetRound(round)
		end, err := r.Append(&step)
		if err != nil {
			t.Fatal(err)
		}
		r.Ring()
		same(t, complete(t, r, end), packetsOf(t, &step))
	}
}

func TestWhatIsAppendedIsWhatTheEngineFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.SampledFrom([]uint64{0, 4092, 1 << 32, math.MaxUint64 - 4095}).Draw(rt, "first") &^ 3
		r := ringOf(t, MinRingBytes, first)
		var want []Packet
		for range rapid.IntRange(1, 30).Draw(rt, "appends") {
			p := programs(40).Draw(rt, "program")
			before, free := r.Written(), r.Free()
			end, err := r.Append(p)
			if err != nil {
				var full *FullError
				if !errors.As(err, &full) || full.Want <= free || full.Free != free || end != before || r.Written() != before {
					rt.Fatalf("error %v at %d with %d free; it ends at %d", err, before, free, end)
				}
				same(rt, complete(t, r, r.Rung()), want)
				want = nil
				continue
			}
			if r.Free() < 0 || end != r.Written() {
				rt.Fatalf("%d bytes are free and %d written, of which Append says %d", r.Free(), r.Written(), end)
			}
			want = append(want, packetsOf(t, p)...)
			r.Ring()
		}
		same(rt, complete(t, r, r.Rung()), want)
	})
}

func TestWhatIsRolledBackIsAsIfItHadNeverBeenWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := 4 * rapid.Uint64Range(0, 1<<20).Draw(rt, "first")
		r, plain := ringOf(t, MinRingBytes, first), ringOf(t, MinRingBytes, first)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			for range rapid.IntRange(0, 3).Draw(rt, "withdrawn") {
				r.Append(programs(30).Draw(rt, "withdrawn")) // whether it fits or not
			}
			r.Rollback()
			kept := programs(20).Draw(rt, "kept")
			end, err := r.Append(kept)
			plainEnd, plainErr := plain.Append(kept)
			if end != plainEnd || fmt.Sprint(err) != fmt.Sprint(plainErr) {
				rt.Fatalf("after a rollback Append ends at %d with %v, without at %d with %v", end, err, plainEnd, plainErr)
			}
			r.Ring()
			plain.Ring()
			for name, counts := range map[string][2]uint64{
				"written":  {r.Written(), plain.Written()},
				"rung":     {r.Rung(), plain.Rung()},
				"free":     {uint64(r.Free()), uint64(plain.Free())},
				"write":    {r.write.Load(), plain.write.Load()},
				"doorbell": {doorbell(r), doorbell(plain)},
			} {
				if counts[0] != counts[1] {
					rt.Fatalf("%s is %d after a rollback, %d without", name, counts[0], counts[1])
				}
			}
			if from := r.ReadCount(); !bytes.Equal(between(r, from, r.Rung()), between(plain, from, r.Rung())) {
				rt.Fatal("the bytes that the engine may read differ")
			}
			if rapid.Bool().Draw(rt, "complete") {
				complete(t, r, r.Rung())
				complete(t, plain, plain.Rung())
			}
		}
	})
}

func TestTheEngineIsToldOfNothingBeforeItIsRung(t *testing.T) {
	r := ringOf(t, MinRingBytes, 0)
	var p Program
	if err := p.Fence(0x1000, 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Append(&p); err != nil {
			t.Fatal(err)
		}
	}
	if r.write.Load() != 0 || doorbell(r) != 0 || r.Rung() != 0 || r.Written() != 3*FenceBytes {
		t.Errorf("write count %d, doorbell %d, rung %d, written %d", r.write.Load(), doorbell(r), r.Rung(), r.Written())
	}
	r.Ring()
	if r.write.Load() != 3*FenceBytes || doorbell(r) != 3*FenceBytes || r.Rung() != 3*FenceBytes {
		t.Errorf("write count %d, doorbell %d, rung %d", r.write.Load(), doorbell(r), r.Rung())
	}
}

// bellOrder notes what the write word held when the doorbell rang.
type bellOrder struct {
	write *hip.Word
	seen  []uint64
}

func (b *bellOrder) Ring(uint64) { b.seen = append(b.seen, b.write.Load()) }

func TestTheWriteCountIsStoredBeforeTheDoorbellAndOnceForEachRing(t *testing.T) {
	write := new(hip.Word)
	bell := &bellOrder{write: write}
	r, err := NewRing(make([]byte, MinRingBytes), new(hip.Word), write, bell)
	if err != nil {
		t.Fatal(err)
	}
	var p Program
	if err := p.Signal(0x1000, 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Append(&p); err != nil {
			t.Fatal(err)
		}
		r.Ring()
		r.Ring() // nothing new
	}
	if fmt.Sprint(bell.seen) != fmt.Sprint([]int{AtomicBytes, 2 * AtomicBytes}) {
		t.Errorf("the doorbell rang with write counts %v", bell.seen)
	}
}

func TestARingIsNeverFilledCompletely(t *testing.T) {
	r := ringOf(t, MinRingBytes, 0)
	var almost, rest Program
	for range MinRingBytes/FenceBytes - 1 {
		if err := almost.Fence(0x1000, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := rest.Fence(0x1000, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Append(&almost); err != nil {
		t.Fatal(err)
	}
	_, err := r.Append(&rest)
	var full *FullError
	if !errors.As(err, &full) || *full != (FullError{Want: FenceBytes, Free: FenceBytes - NOPBytes, Size: MinRingBytes}) {
		t.Fatalf("error %v, want a FullError", err)
	}
	r.Ring()
	complete(t, r, FenceBytes)
	if _, err := r.Append(&rest); err != nil {
		t.Errorf("with one packet done: %v", err)
	}
}

func TestAProgramPastTheWholeRingIsRefusedForGood(t *testing.T) {
	r := ringOf(t, MinRingBytes, 0)
	var p Program
	for range 60 {
		if err := p.Copy(1, 2, 3, 4, 5, 6); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.Append(&p)
	var full *FullError
	if !errors.As(err, &full) || full.Want != 51*80+16+9*80 || !strings.Contains(err.Error(), "even an empty one") {
		t.Errorf("error %v", err)
	}
	if !bytes.Equal(r.bytes, bytes.Repeat([]byte{0xee}, MinRingBytes)) {
		t.Error("bytes were written all the same")
	}
}

func TestARingNeedsAPowerOfTwoAndAgreeingCounts(t *testing.T) {
	at := func(v uint64) *hip.Word {
		w := new(hip.Word)
		w.Store(v)
		return w
	}
	bell := WordDoorbell{at(0)}
	for name, try := range map[string]func() (*Ring, error){
		"too small":     func() (*Ring, error) { return NewRing(make([]byte, 2048), at(0), at(0), bell) },
		"odd size":      func() (*Ring, error) { return NewRing(make([]byte, 4096+64), at(0), at(0), bell) },
		"no read word":  func() (*Ring, error) { return NewRing(make([]byte, 4096), nil, at(0), bell) },
		"no write word": func() (*Ring, error) { return NewRing(make([]byte, 4096), at(0), nil, bell) },
		"no doorbell":   func() (*Ring, error) { return NewRing(make([]byte, 4096), at(0), at(0), nil) },
		"counts differ": func() (*Ring, error) { return NewRing(make([]byte, 4096), at(0), at(64), bell) },
		"odd counts":    func() (*Ring, error) { return NewRing(make([]byte, 4096), at(6), at(6), bell) },
	} {
		_, err := try()
		var ring *RingError
		if !errors.As(err, &ring) {
			t.Errorf("%s: error %v, want a RingError", name, err)
		}
	}
}

// BenchmarkAppend writes a program of 1000 chains of one copy.
func BenchmarkAppend(b *testing.B) {
	r := ringOf(b, 8<<20, 0)
	var p Program
	for i := range uint64(1000) {
		if err := errors.Join(p.Poll(64*i, 1), p.Copy(i, i, 64, 8, 128, 128), p.Signal(64*i, 1)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(p.Bytes())
	b.ReportAllocs()
	for i := range b.N {
		p.SetRound(uint32(i))
		if _, err := r.Append(&p); err != nil {
			b.Fatal(err)
		}
		r.Ring()
		r.read.Store(r.Written())
	}
}
