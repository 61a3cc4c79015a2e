package sdma

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

func TestRowsWithoutGapsBecomeOneLinearCopy(t *testing.T) {
	for name, c := range map[string]struct {
		width, height, srcPitch, dstPitch int64
		want                              Op
	}{
		"one row":                    {100, 1, 7, 9, OpCopyLinear},
		"rows without gaps":          {64, 8, 64, 64, OpCopyLinear},
		"1 GiB in rows":              {1 << 20, 1 << 10, 1 << 20, 1 << 20, OpCopyLinear},
		"a gap between sources":      {64, 8, 65, 64, OpCopyWindow},
		"a gap between destinations": {64, 8, 64, 65, OpCopyWindow},
	} {
		var p Program
		if err := p.Copy(0x1000, 0x9000, c.width, c.height, c.srcPitch, c.dstPitch); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := Decode(p.bytes)
		if err != nil || got.Op != c.want || got.Copy.Bytes() != c.width*c.height {
			t.Errorf("%s: %v, error %v; want %v of %d bytes", name, &got, err, c.want, c.width*c.height)
		}
		if p.CopyBytes() != c.width*c.height || p.Copies() != 1 || p.Packets() != 1 {
			t.Errorf("%s: counted %d copies of %d bytes in %d packets", name, p.Copies(), p.CopyBytes(), p.Packets())
		}
	}
}

func TestAPacketThatCannotBeEncodedLeavesTheProgramAsItWas(t *testing.T) {
	var p Program
	if err := errors.Join(p.Poll(0x1000, 1), p.Copy(0x1000, 0x9000, 64, 2, 64, 80), p.Signal(0x2000, 1), p.Fence(0x3000, 9)); err != nil {
		t.Fatal(err)
	}
	before, packets := bytes.Clone(p.bytes), p.Packets()
	for name, err := range map[string]error{
		"poll off its word":      p.Poll(0x1002, 1),
		"signal off its word":    p.Signal(0x1004, 1),
		"fence off its word":     p.Fence(0x1001, 1),
		"timestamp off its word": p.Timestamp(0x1004),
		"no bytes":               p.Copy(0x1000, 0x9000, 0, 1, 0, 0),
		"a negative rectangle":   p.Copy(0x1000, 0x9000, -8, -8, -8, -8),
		"no rows":                p.Copy(0x1000, 0x9000, 8, 0, 8, 8),
		"one row past 1 GiB":     p.Copy(0x1000, 0x9000, 1<<30+1, 1, 1, 1),
		"linear rows past 1 GiB": p.Copy(0x1000, 0x9000, 1<<20, 1<<10+1, 1<<20, 1<<20),
		"a product past int64":   p.Copy(0x1000, 0x9000, math.MaxInt64, 2, math.MaxInt64, math.MaxInt64),
		"pitch below width":      p.Copy(0x1000, 0x9000, 64, 2, 63, 80),
	} {
		var field *FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: error %v, want a FieldError", name, err)
		}
	}
	if !bytes.Equal(p.bytes, before) || p.Packets() != packets || p.Copies() != 1 || p.CopyBytes() != 128 || p.Bytes() != PollBytes+WindowBytes+AtomicBytes+FenceBytes {
		t.Errorf("the program has changed: %d packets, %d copies, %d bytes moved, %d bytes long", p.Packets(), p.Copies(), p.CopyBytes(), p.Bytes())
	}
}

// copied is what a ring gets of p.
func copied(p *Program) []byte {
	b := make([]byte, p.Bytes())
	p.copyTo(b, 0)
	return b
}

func TestARoundChangesThePollsReferencesAndNothingElse(t *testing.T) {
	build := func(round uint32) *Program {
		var p Program
		for i := range uint64(900) { // several blocks
			// What is copied, signalled and fenced looks like a reference.
			err := errors.Join(p.Poll(0x1000+64*i, round), p.Copy(7, 7, 7, 7, 8, 9), p.Signal(0x700, 7), p.Fence(0x700, 7))
			if err != nil {
				t.Fatal(err)
			}
		}
		return &p
	}
	p := build(7)
	for _, round := range []uint32{8, 1, math.MaxUint32, 7} {
		p.SetRound(round)
		if !bytes.Equal(copied(p), copied(build(round))) {
			t.Errorf("round %d is not what encoding it anew gives", round)
		}
	}
}
