package sdma

import (
	"fmt"
	"math"
)

// Header bits that change what a packet does in ways this package does not do.
const (
	copyFlags   = 1<<16 | 1<<18 | 1<<25 | 1<<27 // encrypted, trusted zone, backwards, broadcast
	windowFlags = 1<<16 | 1<<18 | 7<<29         // encrypted, trusted zone, element size
	pollFlags   = 1 << 26                       // flush instead of polling
	atomicFlags = 1<<16 | 1<<18                 // loop until swapped, trusted zone

	pollMemory  = 1 << 31            // not a register
	linearSwaps = 3<<16 | 3<<24      // of COPY_LINEAR's third dword: byte order
	linearCount = MaxLinearBytes - 1 // the bits of COPY_LINEAR's count
	maxAddr     = uint64(math.MaxUint64)
)

// Decode reads the packet at the start of b. Reserved bits that an engine
// ignores may be set; everything else that this package would not encode is a
// *DecodeError.
func Decode(b []byte) (Packet, error) {
	var p Packet
	err := p.Decode(b)
	return p, err
}

// Decode is the function Decode into p. After an error p has no meaning.
func (p *Packet) Decode(b []byte) error {
	*p = Packet{}
	if len(b) < 4 {
		return &DecodeError{0, fmt.Sprintf("%d bytes are left, a header has 4", len(b)), ErrTruncated}
	}
	header := le.Uint32(b)
	op := Op(header)
	size := op.size()
	if op == OpNOP {
		size += int(header>>16&0x3fff) * 4
	}
	if size == 0 {
		return &DecodeError{header, op.String(), ErrUnknown}
	}
	if size > len(b) {
		return &DecodeError{header, fmt.Sprintf("a %v of %d bytes with %d bytes left", op, size, len(b)), ErrTruncated}
	}
	p.Op, p.Size = op, size
	switch op {
	case OpCopyLinear:
		return p.decodeLinear(header, b)
	case OpCopyWindow:
		return p.decodeWindow(header, b)
	case OpFence:
		p.Addr, p.Value = le.Uint64(b[4:]), le.Uint32(b[12:])
		return malformed(header, aligned(op, p.Addr, 4))
	case OpTrap:
		p.Value = le.Uint32(b[4:])
	case OpPoll:
		return p.decodePoll(header, b)
	case OpAtomic:
		return p.decodeAtomic(header, b)
	case OpTimestamp:
		p.Addr = le.Uint64(b[4:])
		return malformed(header, aligned(op, p.Addr, 8))
	}
	return nil
}

func (p *Packet) decodeLinear(header uint32, b []byte) error {
	if err := unsupported(header, copyFlags); err != nil {
		return err
	}
	if swaps := le.Uint32(b[8:]) & linearSwaps; swaps != 0 {
		return &DecodeError{header, fmt.Sprintf("it swaps bytes (parameters %#x)", swaps), ErrUnsupported}
	}
	n := int64(le.Uint32(b[4:])&linearCount) + 1
	p.Copy = Window{Src: le.Uint64(b[12:]), Dst: le.Uint64(b[20:]), SrcPitch: n, DstPitch: n, Width: n, Height: 1}
	return nil
}

func (p *Packet) decodeWindow(header uint32, b []byte) error {
	if err := unsupported(header, windowFlags); err != nil {
		return err
	}
	b = b[:WindowBytes]
	if depth := le.Uint32(b[76:]); depth != 0 {
		return &DecodeError{header, fmt.Sprintf("a depth of %d slices; it must be 1", int64(depth)+1), ErrUnsupported}
	}
	w := &p.Copy
	w.Width, w.Height = int64(le.Uint32(b[68:]))+1, int64(le.Uint32(b[72:]))+1
	var err error
	if w.Src, w.SrcPitch, err = decodeSide(header, b[4:36]); err != nil {
		return err
	}
	if w.Dst, w.DstPitch, err = decodeSide(header, b[36:68]); err != nil {
		return err
	}
	return malformed(header, w.check())
}

// decodeSide folds base, x and y of one side of a window into an address.
func decodeSide(header uint32, b []byte) (addr uint64, pitch int64, err error) {
	base, x, y, z := le.Uint64(b), uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:])), le.Uint32(b[16:])
	pitch = int64(le.Uint32(b[20:])) + 1
	if z != 0 {
		return 0, 0, &DecodeError{header, fmt.Sprintf("it starts at slice %d; it must start at 0", z), ErrUnsupported}
	}
	// (2³²−1)·2³² + 2³²−1 is the most that y rows and x bytes come to: it fits.
	if off := y*uint64(pitch) + x; base <= maxAddr-off {
		return base + off, pitch, nil
	}
	return 0, 0, &DecodeError{header, fmt.Sprintf("column %d of row %d from %#x is outside the address space", x, y, base), ErrMalformed}
}

func (p *Packet) decodePoll(header uint32, b []byte) error {
	if err := unsupported(header, pollFlags); err != nil {
		return err
	}
	if header&pollMemory == 0 {
		return &DecodeError{header, "it polls a register, not memory", ErrUnsupported}
	}
	last := le.Uint32(b[20:])
	p.Poll = Poll{
		Addr: le.Uint64(b[4:]), Func: Func(header >> 28 & 7), Ref: le.Uint32(b[12:]), Mask: le.Uint32(b[16:]),
		Interval: uint16(last), Retries: uint16(last >> 16 & 0xfff),
	}
	if p.Poll.Func == reservedFunc {
		return &DecodeError{header, "the compare function is the reserved one", ErrMalformed}
	}
	return malformed(header, aligned(OpPoll, p.Poll.Addr, 4))
}

func (p *Packet) decodeAtomic(header uint32, b []byte) error {
	op := AtomicOp(header >> 25)
	if err := unsupported(header, atomicFlags); err != nil {
		return err
	}
	if !op.known() {
		return &DecodeError{header, op.String(), ErrUnsupported}
	}
	a := Atomic{Op: op, Addr: le.Uint64(b[4:]), Operand: le.Uint64(b[12:])}
	if op.Compares() {
		a.Compare = le.Uint64(b[20:])
	}
	if op.Bits() == 32 {
		a.Operand, a.Compare = uint64(uint32(a.Operand)), uint64(uint32(a.Compare))
	}
	p.Atomic = a
	return malformed(header, aligned(OpAtomic, a.Addr, uint64(op.Bits()/8)))
}

func unsupported(header, flags uint32) error {
	if header&flags != 0 {
		return &DecodeError{header, fmt.Sprintf("%v with flags %#x", Op(header), header&flags), ErrUnsupported}
	}
	return nil
}

func malformed(header uint32, err error) error {
	if err != nil {
		return &DecodeError{header, err.Error(), ErrMalformed}
	}
	return nil
}
