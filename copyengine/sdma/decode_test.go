package sdma

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// encoded is one packet of each kind, in the order of their operations.
func encoded(t testing.TB) map[Op][]byte {
	t.Helper()
	all := map[Op][]byte{}
	for _, p := range []Packet{
		{Op: OpNOP, Size: 20},
		{Op: OpCopyLinear, Copy: Window{Src: 0x7f0000001000, Dst: 0x7f0000002000, Width: 300}},
		{Op: OpCopyWindow, Copy: Window{Src: 0x7f0000001000, Dst: 0x7f0000009000, SrcPitch: 64, DstPitch: 128, Width: 48, Height: 9}},
		{Op: OpFence, Addr: 0x7f0000001004, Value: 77},
		{Op: OpTrap, Value: 12},
		{Op: OpPoll, Poll: Poll{Addr: 0x7f0000001004, Func: Less, Ref: 3, Mask: 0xff, Interval: 10, Retries: 5}},
		{Op: OpAtomic, Atomic: Atomic{Op: CompareSwap64, Addr: 0x7f0000001008, Operand: 5, Compare: 4}},
		{Op: OpTimestamp, Addr: 0x7f0000001008},
	} {
		b, err := p.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		all[p.Op] = b
	}
	return all
}

// change sets bits of one dword of a copy of a packet.
func change(b []byte, dword int, clear, set uint32) []byte {
	b = bytes.Clone(b)
	le.PutUint32(b[4*dword:], le.Uint32(b[4*dword:])&^clear|set)
	return b
}

func TestBytesThatAreNoPacketSayWhy(t *testing.T) {
	all := encoded(t)
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"nothing":                  {nil, ErrTruncated},
		"half a header":            {[]byte{0, 0}, ErrTruncated},
		"NOP longer than the rest": {all[OpNOP][:16], ErrTruncated},
		"copy without its end":     {all[OpCopyLinear][:24], ErrTruncated},
		"window without its end":   {all[OpCopyWindow][:76], ErrTruncated},
		"unknown operation":        {change(all[OpTrap], 0, 0xff, 0x3f), ErrUnknown},
		"unknown sub-operation":    {change(all[OpCopyLinear], 0, 0, 0x4<<8), ErrUnknown},
		"timestamp of local clock": {change(all[OpTimestamp], 0, 0xff00, 0), ErrUnknown},
		"broadcast":                {change(all[OpCopyLinear], 0, 0, 1<<27), ErrUnsupported},
		"backwards":                {change(all[OpCopyLinear], 0, 0, 1<<25), ErrUnsupported},
		"encrypted copy":           {change(all[OpCopyLinear], 0, 0, 1<<16), ErrUnsupported},
		"swapped copy":             {change(all[OpCopyLinear], 2, 0, 1<<24), ErrUnsupported},
		"window of 4-byte items":   {change(all[OpCopyWindow], 0, 0, 2<<29), ErrUnsupported},
		"three dimensions":         {change(all[OpCopyWindow], 19, 0, 1), ErrUnsupported},
		"source in slice 1":        {change(all[OpCopyWindow], 5, 0, 1), ErrUnsupported},
		"destination in slice 1":   {change(all[OpCopyWindow], 13, 0, 1), ErrUnsupported},
		"rows that overlap":        {change(all[OpCopyWindow], 6, 63, 40), ErrMalformed},
		"rows outside of space":    {change(change(all[OpCopyWindow], 2, 0, math.MaxUint32), 18, 0, math.MaxUint32), ErrMalformed},
		"x outside of space":       {change(change(all[OpCopyWindow], 2, 0, math.MaxUint32), 3, 0, math.MaxUint32), ErrMalformed},
		"y outside of space":       {change(change(all[OpCopyWindow], 12, 0, math.MaxUint32), 14, 0, math.MaxUint32), ErrMalformed},
		"fence off its word":       {change(all[OpFence], 1, 0, 2), ErrMalformed},
		"timestamp off its word":   {change(all[OpTimestamp], 1, 0, 4), ErrMalformed},
		"poll of a register":       {change(all[OpPoll], 0, 1<<31, 0), ErrUnsupported},
		"poll that flushes":        {change(all[OpPoll], 0, 0, 1<<26), ErrUnsupported},
		"poll of function 7":       {change(all[OpPoll], 0, 0, 7<<28), ErrMalformed},
		"poll off its word":        {change(all[OpPoll], 1, 0, 1), ErrMalformed},
		"atomic of unknown op":     {change(all[OpAtomic], 0, 0x7f<<25, 0x10<<25), ErrUnsupported},
		"atomic that loops":        {change(all[OpAtomic], 0, 0, 1<<16), ErrUnsupported},
		"atomic off its word":      {change(all[OpAtomic], 1, 0, 4), ErrMalformed},
	} {
		_, err := Decode(c.bytes)
		var d *DecodeError
		if !errors.As(err, &d) || !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want a DecodeError that is %v", name, err, c.want)
		}
	}
}

func TestReservedBitsThatAnEngineIgnoresAreAccepted(t *testing.T) {
	all := encoded(t)
	for name, c := range map[string]struct {
		op    Op
		bytes []byte
	}{
		"NOP's payload":          {OpNOP, change(all[OpNOP], 2, 0, 0xdeadbeef)},
		"copy's count":           {OpCopyLinear, change(all[OpCopyLinear], 1, 0, 3<<30)},
		"slice pitches":          {OpCopyWindow, change(change(all[OpCopyWindow], 7, 0, 0xffff), 16, 0, 0xffffffff)},
		"fence's cache policy":   {OpFence, change(all[OpFence], 0, 0, 3<<16)},
		"poll's last dword":      {OpPoll, change(all[OpPoll], 5, 0, 0xf<<28)},
		"atomic's loop interval": {OpAtomic, change(all[OpAtomic], 7, 0, 0xffff)},
		"bytes behind":           {OpTrap, append(bytes.Clone(all[OpTrap]), 1, 2, 3)},
	} {
		want, err := Decode(all[c.op])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(c.bytes); err != nil || got != want {
			t.Errorf("%s: decoded %v, error %v; want %v", name, got, err, want)
		}
	}
}

func TestAWindowsColumnAndRowMoveItsAddress(t *testing.T) {
	b := encoded(t)[OpCopyWindow]
	b = change(change(b, 3, 0, 7), 4, 0, 3)   // source x and y, pitch 64
	b = change(change(b, 11, 0, 9), 12, 0, 2) // destination, pitch 128
	p, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if p.Copy.Src != 0x7f0000001000+3*64+7 || p.Copy.Dst != 0x7f0000009000+2*128+9 {
		t.Errorf("copies from %#x to %#x", p.Copy.Src, p.Copy.Dst)
	}
}

func TestA32BitAtomicIgnoresTheHighHalvesOfItsOperands(t *testing.T) {
	b, err := AppendAtomic(nil, CompareSwap32, 0x1004, 7, 8)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(change(change(b, 4, 0, 99), 6, 0, 98))
	if want := (Atomic{CompareSwap32, 0x1004, 7, 8}); err != nil || p.Atomic != want {
		t.Errorf("decoded %+v, error %v; want %+v", p.Atomic, err, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range encoded(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			var d *DecodeError
			if !errors.As(err, &d) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			return
		}
		if p.Size < 4 || p.Size%4 != 0 || p.Size > len(b) {
			t.Fatalf("%v has size %d of %d bytes", &p, p.Size, len(b))
		}
		canonical, err := p.Append(nil)
		if err != nil {
			t.Fatalf("%v does not encode: %v", &p, err)
		}
		if len(canonical) != p.Size {
			t.Fatalf("%v of %d bytes encodes to %d", &p, p.Size, len(canonical))
		}
		if again, err := Decode(canonical); err != nil || again != p {
			t.Fatalf("%+v decodes again to %+v, error %v", p, again, err)
		}
	})
}
