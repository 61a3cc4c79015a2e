package heap

import "sync/atomic"

// Block is an allocation: the same bytes of every rank's memory.
type Block struct {
	heap  *Heap
	span  span  // what it takes of the heap
	bytes int64 // what was asked for
	holds atomic.Int64
	freed atomic.Bool
}

// Offset is where the block begins in every rank's memory, in bytes.
func (b *Block) Offset() int64 { return b.span.off }

// Bytes is the length that was asked for, in bytes on each rank.
func (b *Block) Bytes() int64 { return b.bytes }

// Hold keeps the space from being used again until Release. It fails with a
// *FreedError once the owner has freed the block.
func (b *Block) Hold() error {
	if b.freed.Load() || !b.hold() {
		return b.gone()
	}
	return nil
}

// hold is Hold for an access, which a holder may still make after Free. It
// reports false when the space has gone back to the heap.
func (b *Block) hold() bool {
	for {
		n := b.holds.Load()
		if n <= 0 {
			return false
		}
		if b.holds.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends a Hold.
func (b *Block) Release() {
	if b.holds.Add(-1) == 0 {
		b.heap.reclaim(b)
	}
}

// Free drops the owner's hold: nobody can take a new one, and the space is
// used again once the last is released. Until then its holders may go on
// reading and writing. Freeing twice is a *FreedError and has no effect.
func (b *Block) Free() error {
	if !b.freed.CompareAndSwap(false, true) {
		return b.gone()
	}
	b.Release()
	return nil
}

func (b *Block) gone() error { return &FreedError{Offset: b.span.off, Bytes: b.bytes} }

// Zero clears the block's bytes on one rank. It fails with a *RankError or a
// *FreedError, or with what the rank's device says.
func (b *Block) Zero(rank int) error {
	if err := b.heap.rank(rank); err != nil {
		return err
	}
	if !b.hold() {
		return b.gone()
	}
	defer b.Release()
	return b.heap.mems[rank].Clear(b.span.off, b.bytes)
}
