package sdma

import (
	"encoding/binary"
	"fmt"
)

var le = binary.LittleEndian

// Each encoder appends one packet to b and returns the longer slice. When a
// value does not fit its field it returns b as it was and a *FieldError.

// AppendNOP appends padding of n bytes, a multiple of 4 up to MaxNOPBytes.
func AppendNOP(b []byte, n int64) ([]byte, error) {
	if n < NOPBytes || n > MaxNOPBytes || n%4 != 0 {
		return b, &FieldError{OpNOP, "size", fmt.Sprintf("%d bytes", n), fmt.Sprintf("a multiple of 4 from %d to %d bytes", NOPBytes, MaxNOPBytes)}
	}
	b = le.AppendUint32(b, uint32(OpNOP)|uint32(n/4-1)<<16)
	for range n/4 - 1 {
		b = le.AppendUint32(b, 0)
	}
	return b, nil
}

// AppendCopyLinear appends a copy of n bytes, 1 to MaxLinearBytes.
func AppendCopyLinear(b []byte, src, dst uint64, n int64) ([]byte, error) {
	if n < 1 || n > MaxLinearBytes {
		return b, &FieldError{OpCopyLinear, "size", fmt.Sprintf("%d bytes", n), fmt.Sprintf("1 to %d bytes: split larger copies", MaxLinearBytes)}
	}
	b = le.AppendUint32(b, uint32(OpCopyLinear))
	b = le.AppendUint32(b, uint32(n-1))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, src)
	return le.AppendUint64(b, dst), nil
}

// AppendCopyWindow appends a copy of rows. Width, height and pitches are 1 to
// 2³²; with more than one row no pitch is below the width, and no row lies
// beyond the address space.
func AppendCopyWindow(b []byte, w Window) ([]byte, error) {
	if err := w.check(); err != nil {
		return b, err
	}
	b = le.AppendUint32(b, uint32(OpCopyWindow))
	b = appendSide(b, w.Src, w.SrcPitch)
	b = appendSide(b, w.Dst, w.DstPitch)
	b = le.AppendUint32(b, uint32(w.Width-1))
	b = le.AppendUint32(b, uint32(w.Height-1))
	return le.AppendUint32(b, 0), nil // depth 1
}

// appendSide appends base, x, y, z, pitch and slice pitch of one side.
func appendSide(b []byte, base uint64, pitch int64) []byte {
	b = le.AppendUint64(b, base)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(pitch-1))
	return le.AppendUint64(b, 0)
}

// AppendFence appends a store of v to the 32-bit word at addr, made when
// everything before it is done. addr is a multiple of 4.
func AppendFence(b []byte, addr uint64, v uint32) ([]byte, error) {
	if err := aligned(OpFence, addr, 4); err != nil {
		return b, err
	}
	b = le.AppendUint32(b, uint32(OpFence))
	b = le.AppendUint64(b, addr)
	return le.AppendUint32(b, v), nil
}

// AppendTrap appends an interrupt with the given context.
func AppendTrap(b []byte, context uint32) ([]byte, error) {
	b = le.AppendUint32(b, uint32(OpTrap))
	return le.AppendUint32(b, context), nil
}

// AppendPoll appends a wait on memory. The address is a multiple of 4, the
// function not the reserved one, the retry count at most RetryForever.
func AppendPoll(b []byte, p Poll) ([]byte, error) {
	if err := aligned(OpPoll, p.Addr, 4); err != nil {
		return b, err
	}
	if p.Func >= reservedFunc {
		return b, &FieldError{OpPoll, "function", p.Func.String(), "one from always to >"}
	}
	if p.Retries > RetryForever {
		return b, &FieldError{OpPoll, "retry count", fmt.Sprintf("%d", p.Retries), fmt.Sprintf("at most %d, which means for ever", RetryForever)}
	}
	b = le.AppendUint32(b, uint32(OpPoll)|uint32(p.Func)<<28|1<<31)
	b = le.AppendUint64(b, p.Addr)
	b = le.AppendUint32(b, p.Ref)
	b = le.AppendUint32(b, p.Mask)
	return le.AppendUint32(b, uint32(p.Interval)|uint32(p.Retries)<<16), nil
}

// AppendAtomic appends an atomic operation on the word at addr, a multiple of
// the word's size. An addition takes one operand; a compare-and-swap takes two,
// the value to store and the value to find. Operands of 32-bit operations have
// 32 bits.
func AppendAtomic(b []byte, op AtomicOp, addr uint64, operands ...uint64) ([]byte, error) {
	if !op.known() {
		return b, &FieldError{OpAtomic, "operation", op.String(), "an addition or a compare-and-swap"}
	}
	if err := aligned(OpAtomic, addr, uint64(op.Bits()/8)); err != nil {
		return b, err
	}
	want := 1
	if op.Compares() {
		want = 2
	}
	if len(operands) != want {
		return b, &FieldError{OpAtomic, "number of operands", fmt.Sprintf("%d", len(operands)), fmt.Sprintf("%d for %v", want, op)}
	}
	for _, v := range operands {
		if op.Bits() == 32 && v>>32 != 0 {
			return b, &FieldError{OpAtomic, "operand", fmt.Sprintf("%#x", v), fmt.Sprintf("a value of 32 bits for %v", op)}
		}
	}
	b = le.AppendUint32(b, uint32(OpAtomic)|uint32(op)<<25)
	b = le.AppendUint64(b, addr)
	b = le.AppendUint64(b, operands[0])
	b = le.AppendUint64(b, operands[want-1]*uint64(want-1)) // no compare value: 0
	return le.AppendUint32(b, 0), nil
}

// AppendTimestamp appends a store of the engine's global clock to the 64-bit
// word at addr, a multiple of 8.
func AppendTimestamp(b []byte, addr uint64) ([]byte, error) {
	if err := aligned(OpTimestamp, addr, 8); err != nil {
		return b, err
	}
	b = le.AppendUint32(b, uint32(OpTimestamp))
	return le.AppendUint64(b, addr), nil
}

func aligned(op Op, addr, n uint64) error {
	if addr%n != 0 {
		return &FieldError{op, "address", fmt.Sprintf("%#x", addr), fmt.Sprintf("a multiple of %d", n)}
	}
	return nil
}
