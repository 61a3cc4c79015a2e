package heap

import (
	"maps"
	"slices"
	"sync"

	"github.com/triggeredplans/sluice/hip"
)

// Alignment is what every block's offset is a multiple of, in bytes. It is
// what GPU allocators promise: any vector load of a block's first element is
// aligned, and no two blocks share a cache line.
const Alignment = 256

// Heap hands out the same offsets on every rank.
type Heap struct {
	mems []*hip.Memory // one per rank, all of one size
	size int64

	mu     sync.Mutex
	free   spans
	live   map[*Block]struct{} // blocks whose space is not back yet
	used   int64
	closed bool
}

// New makes a heap over one memory per rank, which it owns from then on and
// frees when it is closed. They have one size, and start on a multiple of
// Alignment; the error is a *MemoryError otherwise, and the memories stay the
// caller's.
func New(mems []*hip.Memory) (*Heap, error) {
	if len(mems) == 0 {
		return nil, &MemoryError{Why: "there are no ranks; a heap needs the memory of at least one"}
	}
	size := mems[0].Size()
	for rank, m := range mems {
		if m.Size() != size {
			return nil, &MemoryError{Rank: rank, Bytes: m.Size(), Want: size, Why: "not of the size of rank 0's; a symmetric heap has one size"}
		}
		if m.Addr()%Alignment != 0 {
			return nil, &MemoryError{Rank: rank, Bytes: m.Size(), Want: size, Why: "not aligned as a heap must be"}
		}
	}
	h := &Heap{mems: slices.Clone(mems), size: size, live: map[*Block]struct{}{}}
	if whole := size &^ (Alignment - 1); whole > 0 {
		h.free = spans{{0, whole}}
	}
	return h, nil
}

// Ranks is the number of ranks.
func (h *Heap) Ranks() int { return len(h.mems) }

// Size is the length of each rank's memory in bytes.
func (h *Heap) Size() int64 { return h.size }

// Used is how many bytes of each rank's memory are taken: by blocks that are
// not freed, and by freed ones that somebody still holds. Blocks are rounded
// up to Alignment.
func (h *Heap) Used() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// Memory is a rank's memory, nil if there is no such rank.
func (h *Heap) Memory(rank int) *hip.Memory {
	if h.rank(rank) != nil {
		return nil
	}
	return h.mems[rank]
}

// rank checks a rank.
func (h *Heap) rank(rank int) error {
	if rank < 0 || rank >= len(h.mems) {
		return &RankError{Rank: rank, Ranks: len(h.mems)}
	}
	return nil
}

// Alloc takes so many bytes at the same offset on every rank, a multiple of
// Alignment. What they hold is left from whoever had them before: Zero clears
// them. The same calls in the same order give the same offsets. It fails with
// an *ExhaustedError, a *SizeError when bytes is below 1, or ErrClosed.
func (h *Heap) Alloc(bytes int64) (*Block, error) {
	if bytes < 1 {
		return nil, &SizeError{Bytes: bytes}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	n := bytes
	if rest := n % Alignment; rest != 0 && n < h.size {
		n += Alignment - rest
	}
	off, ok := h.free.take(n)
	if !ok {
		free, largest := h.free.figures()
		return nil, &ExhaustedError{Want: bytes, Free: free, Largest: largest, Size: h.size}
	}
	b := &Block{heap: h, span: span{off, n}, bytes: bytes}
	b.holds.Store(1)
	h.live[b] = struct{}{}
	h.used += n
	return b, nil
}

// reclaim takes back the space of a block that nobody holds.
func (h *Heap) reclaim(b *Block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, b)
	h.free.put(b.span)
	h.used -= b.span.n
	h.freeMemory()
}

// freeMemory frees the memories of a closed heap that has no block left.
func (h *Heap) freeMemory() {
	if h.closed && len(h.live) == 0 {
		for _, m := range h.mems {
			m.Free()
		}
	}
}

// Close frees every block and lets none be allocated. The memories are freed
// at once if nobody holds a block, and else with the last Release; Used tells
// what is still held. Closing twice has no effect.
func (h *Heap) Close() {
	h.mu.Lock()
	blocks := slices.Collect(maps.Keys(h.live))
	h.closed = true
	h.freeMemory()
	h.mu.Unlock()
	for _, b := range blocks {
		_ = b.Free() // it may have been freed already, which is as well
	}
}
