package hip

import "sync/atomic"

// Word is a 64-bit word that somebody may wait on: a gate, a signal, a ring's
// read count. It is reached through Memory.Word, or is a field of a Go value
// on the heap; it must not live on a stack, whose addresses move. Every write
// wakes the waiters that watch the word.
//
// All operations are sequentially consistent, which is stronger than the
// system-scope acquire and release that they stand for.
type Word struct{ v uint64 }

// Load returns the word.
func (w *Word) Load() uint64 { return atomic.LoadUint64(&w.v) }

// Store writes the word and wakes its waiters.
func (w *Word) Store(v uint64) {
	atomic.StoreUint64(&w.v, v)
	wake(w)
}

// Add adds d, wakes the word's waiters and returns the new value.
func (w *Word) Add(d uint64) uint64 {
	v := atomic.AddUint64(&w.v, d)
	wake(w)
	return v
}

// Signal adds d and reports whether that woke somebody.
func (w *Word) Signal(d uint64) (woke bool) {
	atomic.AddUint64(&w.v, d)
	return wake(w)
}

// CompareAndSwap stores v if the word holds old, and reports whether it did.
func (w *Word) CompareAndSwap(old, v uint64) bool {
	if !atomic.CompareAndSwapUint64(&w.v, old, v) {
		return false
	}
	wake(w)
	return true
}

// StoreHalf writes one 32-bit half of the word (0 is the low half), leaves the
// other as it is, and wakes the word's waiters.
func (w *Word) StoreHalf(half int, v uint32) {
	shift := 32 * uint(half&1)
	for {
		old := w.Load()
		if w.CompareAndSwap(old, old&^(0xffffffff<<shift)|uint64(v)<<shift) {
			return
		}
	}
}

// LoadHalf returns one 32-bit half of the word; 0 is the low half.
func (w *Word) LoadHalf(half int) uint32 { return uint32(w.Load() >> (32 * uint(half&1))) }
