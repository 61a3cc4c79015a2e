package sdma

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

func TestAFieldThatDoesNotFitIsAFieldErrorAndLeavesTheBytesAlone(t *testing.T) {
	window := func(change func(*Window)) func([]byte) ([]byte, error) {
		w := Window{Src: 0x1000, Dst: 0x9000, SrcPitch: 64, DstPitch: 64, Width: 16, Height: 8}
		change(&w)
		return func(b []byte) ([]byte, error) { return AppendCopyWindow(b, w) }
	}
	poll := func(p Poll) func([]byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) { return AppendPoll(b, p) }
	}
	atomic := func(op AtomicOp, addr uint64, v ...uint64) func([]byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) { return AppendAtomic(b, op, addr, v...) }
	}
	for name, c := range map[string]struct {
		encode func([]byte) ([]byte, error)
		field  string
	}{
		"NOP of nothing":             {func(b []byte) ([]byte, error) { return AppendNOP(b, 0) }, "size"},
		"NOP of odd size":            {func(b []byte) ([]byte, error) { return AppendNOP(b, 10) }, "size"},
		"NOP past its count":         {func(b []byte) ([]byte, error) { return AppendNOP(b, MaxNOPBytes+4) }, "size"},
		"copy of nothing":            {func(b []byte) ([]byte, error) { return AppendCopyLinear(b, 8, 16, 0) }, "size"},
		"copy of less than nothing":  {func(b []byte) ([]byte, error) { return AppendCopyLinear(b, 8, 16, -1) }, "size"},
		"copy past 1 GiB":            {func(b []byte) ([]byte, error) { return AppendCopyLinear(b, 8, 16, 1<<30+1) }, "size"},
		"window without width":       {window(func(w *Window) { w.Width = 0 }), "width"},
		"window past 4 GiB wide":     {window(func(w *Window) { w.Width = 1<<32 + 1 }), "width"},
		"window without rows":        {window(func(w *Window) { w.Height = 0 }), "height"},
		"window of negative rows":    {window(func(w *Window) { w.Height = math.MinInt64 }), "height"},
		"window without pitch":       {window(func(w *Window) { w.SrcPitch = 0 }), "source pitch"},
		"window past the pitch":      {window(func(w *Window) { w.DstPitch = 1<<32 + 1 }), "destination pitch"},
		"source rows that overlap":   {window(func(w *Window) { w.SrcPitch = 15 }), "source pitch"},
		"written rows that overlap":  {window(func(w *Window) { w.DstPitch = 15 }), "destination pitch"},
		"source past the top":        {window(func(w *Window) { w.Src = math.MaxUint64 - 400 }), "source"},
		"destination past the top":   {window(func(w *Window) { w.Dst = math.MaxUint64 - 400 }), "destination"},
		"rows past the top":          {window(func(w *Window) { w.Height, w.SrcPitch = 1<<32, 1<<32 }), "source"},
		"fence off its word":         {func(b []byte) ([]byte, error) { return AppendFence(b, 0x1002, 1) }, "address"},
		"timestamp off its word":     {func(b []byte) ([]byte, error) { return AppendTimestamp(b, 0x1004) }, "address"},
		"poll off its word":          {poll(Poll{Addr: 0x1001}), "address"},
		"poll of reserved function":  {poll(Poll{Addr: 0x1000, Func: 7}), "function"},
		"poll of no function":        {poll(Poll{Addr: 0x1000, Func: 200}), "function"},
		"poll of too many retries":   {poll(Poll{Addr: 0x1000, Retries: 0x1000}), "retry count"},
		"unknown atomic":             {atomic(0x07, 0x1000, 1), "operation"},
		"atomic past its bits":       {atomic(0x80|Add64, 0x1000, 1), "operation"},
		"64-bit atomic off its word": {atomic(Add64, 0x1004, 1), "address"},
		"32-bit atomic off its word": {atomic(Add32, 0x1002, 1), "address"},
		"atomic without operand":     {atomic(Add64, 0x1000), "number of operands"},
		"swap without a comparison":  {atomic(CompareSwap64, 0x1000, 1), "number of operands"},
		"addition with a comparison": {atomic(Add32, 0x1000, 1, 2), "number of operands"},
		"wide operand of a narrow":   {atomic(Add32Silent, 0x1000, 1<<32), "operand"},
		"wide comparison":            {atomic(CompareSwap32, 0x1000, 1, 1<<32), "operand"},
	} {
		before := []byte{1, 2, 3}
		b, err := c.encode(before)
		var field *FieldError
		if !errors.As(err, &field) || field.Field != c.field {
			t.Errorf("%s: error %v, want a FieldError of the %s", name, err, c.field)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("%s: the bytes became %v", name, b)
		}
	}
}

func TestTheLargestFieldsFit(t *testing.T) {
	for _, p := range []Packet{
		{Op: OpNOP, Size: MaxNOPBytes},
		{Op: OpCopyLinear, Size: LinearBytes, Copy: Window{Src: math.MaxUint64, Dst: math.MaxUint64, SrcPitch: 1 << 30, DstPitch: 1 << 30, Width: 1 << 30, Height: 1}},
		{Op: OpCopyWindow, Size: WindowBytes, Copy: Window{Src: 1, Dst: 1 << 62, SrcPitch: 1 << 32, DstPitch: 1 << 32, Width: 1 << 32, Height: 1 << 30}},
		{Op: OpCopyWindow, Size: WindowBytes, Copy: Window{Src: 1, Dst: 2, SrcPitch: 1, DstPitch: 1, Width: 1, Height: 1 << 32}},
		{Op: OpPoll, Size: PollBytes, Poll: Poll{Addr: math.MaxUint64 - 3, Func: Greater, Ref: math.MaxUint32, Mask: math.MaxUint32, Interval: math.MaxUint16, Retries: RetryForever}},
		{Op: OpAtomic, Size: AtomicBytes, Atomic: Atomic{Op: CompareSwap64Silent, Addr: math.MaxUint64 - 7, Operand: math.MaxUint64, Compare: math.MaxUint64}},
		{Op: OpAtomic, Size: AtomicBytes, Atomic: Atomic{Op: Add32Silent, Addr: 4, Operand: math.MaxUint32}},
		{Op: OpFence, Size: FenceBytes, Addr: math.MaxUint64 - 3, Value: math.MaxUint32},
		{Op: OpTrap, Size: TrapBytes, Value: math.MaxUint32},
		{Op: OpTimestamp, Size: TimestampBytes, Addr: math.MaxUint64 - 7},
	} {
		b, err := p.Append(nil)
		if err != nil {
			t.Errorf("%v: %v", &p, err)
			continue
		}
		if len(b) != p.Size {
			t.Errorf("%v has %d bytes, want %d", &p, len(b), p.Size)
		}
		if q, err := Decode(b); err != nil || q != p {
			t.Errorf("%v decodes to %v, error %v", p, q, err)
		}
	}
}

func TestAPollsFunctionsCompareUnsignedUnderTheMask(t *testing.T) {
	const high = 0x80000000 // negative, were it signed
	for _, c := range []struct {
		f       Func
		v, mask uint32
		ref     uint32
		want    bool
	}{
		{Always, 0, 0, 9, true},
		{Less, 4, ^uint32(0), 5, true}, {Less, 5, ^uint32(0), 5, false}, {Less, high, ^uint32(0), 5, false},
		{LessEqual, 5, ^uint32(0), 5, true}, {LessEqual, 6, ^uint32(0), 5, false}, {LessEqual, high, ^uint32(0), 5, false},
		{Equal, 5, ^uint32(0), 5, true}, {Equal, 6, ^uint32(0), 5, false}, {Equal, 0xff05, 0xff, 5, true},
		{NotEqual, 5, ^uint32(0), 5, false}, {NotEqual, 6, ^uint32(0), 5, true}, {NotEqual, 0xff05, 0xff, 5, false},
		{GreaterEqual, 5, ^uint32(0), 5, true}, {GreaterEqual, 4, ^uint32(0), 5, false}, {GreaterEqual, high, ^uint32(0), 5, true},
		{Greater, 6, ^uint32(0), 5, true}, {Greater, 5, ^uint32(0), 5, false}, {Greater, high, 0xffff, 5, false},
		{reservedFunc, 5, ^uint32(0), 5, false},
	} {
		p := Poll{Func: c.f, Mask: c.mask, Ref: c.ref}
		if got := p.Holds(c.v); got != c.want {
			t.Errorf("(%#x & %#x) %v %#x is %v", c.v, c.mask, c.f, c.ref, got)
		}
	}
}
