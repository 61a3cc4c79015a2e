package sdma

import "fmt"

// Packet is one decoded packet. Only the fields that its Op names are set.
type Packet struct {
	Op     Op
	Size   int    // bytes in the ring, header included
	Copy   Window // OpCopyLinear (one row), OpCopyWindow
	Poll   Poll   // OpPoll
	Atomic Atomic // OpAtomic
	Addr   uint64 // OpFence, OpTimestamp
	Value  uint32 // OpFence, and OpTrap's context
}

// Append encodes p in its canonical form, reserved bits zero, and appends it
// to b: Decode gives p back. The error is a *FieldError.
func (p *Packet) Append(b []byte) ([]byte, error) {
	switch p.Op {
	case OpNOP:
		return AppendNOP(b, int64(p.Size))
	case OpCopyLinear:
		return AppendCopyLinear(b, p.Copy.Src, p.Copy.Dst, p.Copy.Width)
	case OpCopyWindow:
		return AppendCopyWindow(b, p.Copy)
	case OpFence:
		return AppendFence(b, p.Addr, p.Value)
	case OpTrap:
		return AppendTrap(b, p.Value)
	case OpPoll:
		return AppendPoll(b, p.Poll)
	case OpAtomic:
		if p.Atomic.Op.Compares() {
			return AppendAtomic(b, p.Atomic.Op, p.Atomic.Addr, p.Atomic.Operand, p.Atomic.Compare)
		}
		return AppendAtomic(b, p.Atomic.Op, p.Atomic.Addr, p.Atomic.Operand)
	case OpTimestamp:
		return AppendTimestamp(b, p.Addr)
	}
	return b, &FieldError{p.Op, "operation", p.Op.String(), "one that this package encodes"}
}

// String shows the packet's name and the fields that matter.
func (p *Packet) String() string {
	switch c := &p.Copy; p.Op {
	case OpCopyLinear:
		return fmt.Sprintf("%v of %d bytes from %#x to %#x", p.Op, c.Width, c.Src, c.Dst)
	case OpCopyWindow:
		return fmt.Sprintf("%v of %d rows of %d bytes from %#x (pitch %d) to %#x (pitch %d)", p.Op, c.Height, c.Width, c.Src, c.SrcPitch, c.Dst, c.DstPitch)
	case OpFence:
		return fmt.Sprintf("%v of %d to %#x", p.Op, p.Value, p.Addr)
	case OpPoll:
		return fmt.Sprintf("%v of %#x (& %#x) %v %d", p.Op, p.Poll.Addr, p.Poll.Mask, p.Poll.Func, p.Poll.Ref)
	case OpAtomic:
		return fmt.Sprintf("%v %v at %#x of %d", p.Op, p.Atomic.Op, p.Atomic.Addr, p.Atomic.Operand)
	case OpTimestamp:
		return fmt.Sprintf("%v to %#x", p.Op, p.Addr)
	}
	return p.Op.String()
}
