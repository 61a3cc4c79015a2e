package sdma

import "fmt"

// AtomicOp is what an ATOMIC does with its word.
type AtomicOp uint8

// The atomic operations. Those that return the old value and those that do not
// have the same effect on memory; an engine has nobody to return it to.
const (
	CompareSwap32       AtomicOp = 0x08
	Add32               AtomicOp = 0x0f
	CompareSwap64       AtomicOp = 0x28
	Add64               AtomicOp = 0x2f
	CompareSwap32Silent AtomicOp = CompareSwap32 | silent
	Add32Silent         AtomicOp = Add32 | silent
	CompareSwap64Silent AtomicOp = CompareSwap64 | silent
	Add64Silent         AtomicOp = Add64 | silent
)

const silent = 0x40 // does not return the old value

// known reports whether this package knows the operation.
func (o AtomicOp) known() bool {
	switch o &^ silent {
	case CompareSwap32, Add32, CompareSwap64, Add64:
		return o < 0x80
	}
	return false
}

// Bits is the width of the word: 32 or 64.
func (o AtomicOp) Bits() int {
	if o&0x20 != 0 {
		return 64
	}
	return 32
}

// Compares reports whether the operation is a compare-and-swap.
func (o AtomicOp) Compares() bool { return o&0x0f == 0x08 }

// String is the operation's name in AMD's headers.
func (o AtomicOp) String() string {
	if !o.known() {
		return fmt.Sprintf("AtomicOp(%#x)", uint8(o))
	}
	name := "ADD"
	if o.Compares() {
		name = "CMPSWAP"
	}
	if o&silent == 0 {
		name += "_RTN"
	}
	return fmt.Sprintf("%s_%d", name, o.Bits())
}

// Atomic is one atomic operation on the word at Addr, a multiple of its size.
type Atomic struct {
	Op      AtomicOp
	Addr    uint64
	Operand uint64 // added, or stored by a compare-and-swap
	Compare uint64 // what the word must hold to be swapped
}
