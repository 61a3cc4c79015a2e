package sdma

import "fmt"

// Func is the comparison of a POLL_REGMEM.
type Func uint8

// A poll ends when (word & Mask) Func (Ref) holds, unsigned.
const (
	Always Func = iota
	Less
	LessEqual
	Equal
	NotEqual
	GreaterEqual
	Greater
	reservedFunc
)

// String is the comparison's sign.
func (f Func) String() string {
	if f > reservedFunc {
		return fmt.Sprintf("Func(%d)", uint8(f))
	}
	return [...]string{"always", "<", "<=", "==", "!=", ">=", ">", "reserved"}[f]
}

// RetryForever is the retry count of a poll that never gives up.
const RetryForever = 0xfff

// Poll is the waiting of a POLL_REGMEM: on the 32-bit word at Addr, a multiple
// of 4.
type Poll struct {
	Addr     uint64
	Func     Func
	Ref      uint32
	Mask     uint32
	Interval uint16 // engine clocks between two looks
	Retries  uint16 // looks after the first; RetryForever is the largest
}

// Holds reports whether the poll would end if the word were v.
func (p *Poll) Holds(v uint32) bool {
	v &= p.Mask
	switch p.Func {
	case Less:
		return v < p.Ref
	case LessEqual:
		return v <= p.Ref
	case Equal:
		return v == p.Ref
	case NotEqual:
		return v != p.Ref
	case GreaterEqual:
		return v >= p.Ref
	case Greater:
		return v > p.Ref
	}
	return p.Func == Always
}
