package sdma

import (
	"slices"
	"sort"
)

// pollInterval is how many engine clocks lie between two looks of a poll.
const pollInterval = 10

// Program is a sequence of packets, encoded once in memory of its own, that a
// ring takes as often as it is given. Rounds change the references of its
// polls and nothing else. The zero Program is empty and ready for use; it is
// not for use by several goroutines at once.
type Program struct {
	bytes  []byte
	starts []int // where each packet begins
	polls  []int // where each poll begins
	round  uint32
	stale  bool // polls have yet to get round
	copies int
	moved  int64
}

// Poll adds a wait, for ever, until the 32-bit word at addr is at least ref.
// addr is a multiple of 4. The error is a *FieldError.
func (p *Program) Poll(addr uint64, ref uint32) error {
	b, err := AppendPoll(p.bytes, Poll{Addr: addr, Func: GreaterEqual, Ref: ref, Mask: 0xffffffff, Interval: pollInterval, Retries: RetryForever})
	if err != nil {
		return err
	}
	p.polls = append(p.polls, len(p.bytes))
	p.add(b)
	return nil
}

// Copy adds a copy of height rows of width bytes; pitches are in bytes. Rows
// that follow one another without a gap on both sides become one linear copy,
// which is at most MaxLinearBytes. The error is a *FieldError.
func (p *Program) Copy(src, dst uint64, width, height, srcPitch, dstPitch int64) error {
	w := Window{Src: src, Dst: dst, SrcPitch: srcPitch, DstPitch: dstPitch, Width: width, Height: height}
	var b []byte
	var err error
	if w.Contiguous() && width > 0 && height > 0 {
		b, err = AppendCopyLinear(p.bytes, src, dst, w.Bytes())
	} else {
		b, err = AppendCopyWindow(p.bytes, w)
	}
	if err != nil {
		return err
	}
	p.copies++
	p.moved += w.Bytes()
	p.add(b)
	return nil
}

// Signal adds an atomic addition to the 64-bit word at addr, a multiple of 8.
// The error is a *FieldError.
func (p *Program) Signal(addr uint64, add uint64) error {
	b, err := AppendAtomic(p.bytes, Add64, addr, add)
	if err != nil {
		return err
	}
	p.add(b)
	return nil
}

// Fence adds a store of v to the 32-bit word at addr, a multiple of 4. The
// error is a *FieldError.
func (p *Program) Fence(addr uint64, v uint32) error {
	b, err := AppendFence(p.bytes, addr, v)
	if err != nil {
		return err
	}
	p.add(b)
	return nil
}

// Timestamp adds a store of the engine's clock to the 64-bit word at addr, a
// multiple of 8. The error is a *FieldError.
func (p *Program) Timestamp(addr uint64) error {
	b, err := AppendTimestamp(p.bytes, addr)
	if err != nil {
		return err
	}
	p.add(b)
	return nil
}

// add takes b, which is p.bytes and one more packet.
func (p *Program) add(b []byte) {
	p.starts = append(p.starts, len(p.bytes))
	p.bytes = b
}

// SetRound makes round the reference of every poll.
func (p *Program) SetRound(round uint32) { p.round, p.stale = round, true }

// blockBytes is how much of a program is patched and then copied at a time, so
// that it is in the first-level cache for both.
const blockBytes = 16 << 10

// copyTo fills dst with what follows byte from, the start of a packet.
func (p *Program) copyTo(dst []byte, from int) {
	next := len(p.polls) // to patch
	if p.stale {
		next, _ = slices.BinarySearch(p.polls, from)
	}
	for len(dst) > 0 {
		to := from + min(len(dst), blockBytes)
		for ; next < len(p.polls) && p.polls[next] < to; next++ {
			le.PutUint32(p.bytes[p.polls[next]+12:], p.round)
		}
		dst = dst[copy(dst, p.bytes[from:to]):]
		from = to
	}
}

// Bytes is the length in bytes, without any padding that a ring adds.
func (p *Program) Bytes() int64 { return int64(len(p.bytes)) }

// Packets is how many packets there are.
func (p *Program) Packets() int { return len(p.starts) }

// Copies is how many of the packets are copies.
func (p *Program) Copies() int { return p.copies }

// CopyBytes is how many bytes the copies move.
func (p *Program) CopyBytes() int64 { return p.moved }

// fits is how many bytes of p, from byte from on, fill room with whole packets.
func (p *Program) fits(from, room int64) int64 {
	if rest := p.Bytes() - from; rest <= room {
		return rest
	}
	i := sort.Search(len(p.starts), func(i int) bool { return int64(p.starts[i]) > from+room })
	return int64(p.starts[i-1]) - from
}
