package sdma

import "fmt"

// Op is the low half of a packet's header: the operation in bits 0–7 and the
// sub-operation in bits 8–15.
type Op uint16

// The operations that this package encodes and decodes.
const (
	OpNOP        Op = 0x0000
	OpCopyLinear Op = 0x0001
	OpCopyWindow Op = 0x2401 // COPY_LINEAR_SUB_WINDOW_LARGE
	OpFence      Op = 0x0005
	OpTrap       Op = 0x0006
	OpPoll       Op = 0x0008
	OpAtomic     Op = 0x000a
	OpTimestamp  Op = 0x020d // of the global clock
)

// Sizes of packets in bytes, header included. A NOP has NOPBytes or more, up to
// MaxNOPBytes.
const (
	NOPBytes       = 4
	LinearBytes    = 28
	WindowBytes    = 80
	FenceBytes     = 16
	TrapBytes      = 8
	PollBytes      = 24
	AtomicBytes    = 32
	TimestampBytes = 12

	// MaxNOPBytes is a header and the 2¹⁴−1 dwords that its count can hold.
	MaxNOPBytes = 4 << 14
)

var opNames = map[Op]string{
	OpNOP:        "NOP",
	OpCopyLinear: "COPY_LINEAR",
	OpCopyWindow: "COPY_LINEAR_SUB_WINDOW_LARGE",
	OpFence:      "FENCE",
	OpTrap:       "TRAP",
	OpPoll:       "POLL_REGMEM",
	OpAtomic:     "ATOMIC",
	OpTimestamp:  "TIMESTAMP",
}

// String is the packet's name in AMD's headers.
func (o Op) String() string {
	if s, ok := opNames[o]; ok {
		return s
	}
	return fmt.Sprintf("op %d sub-op %d", o&0xff, o>>8)
}

// size is the packet's length in bytes, that of its header for a NOP.
func (o Op) size() int {
	switch o {
	case OpNOP:
		return NOPBytes
	case OpCopyLinear:
		return LinearBytes
	case OpCopyWindow:
		return WindowBytes
	case OpFence:
		return FenceBytes
	case OpTrap:
		return TrapBytes
	case OpPoll:
		return PollBytes
	case OpAtomic:
		return AtomicBytes
	case OpTimestamp:
		return TimestampBytes
	}
	return 0
}
