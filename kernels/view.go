package kernels

import (
	"math"
	"runtime"

	"github.com/triggeredplans/sluice/hip"
)

// View is what a kernel sees of its plan, read from the handle that Start
// returned. Each thread makes its own; it is valid while the thread runs.
type View struct {
	t      *hip.Thread
	handle place
	gates  place // the rank's own gate table
	tables place // a word per rank: the address of its gate table
	faults place // the fault row
	trace  place // a word per chunk, or nowhere
	chunks int
	rank   int
	round  uint64
	world  int
	first  int
	own    int
}

// place is where something begins in memory that the thread holds.
type place struct {
	m   *hip.Memory
	off int64
}

func (p place) word(off int64) *hip.Word { return p.m.Word(p.off + off) }

// maxChunks keeps the arithmetic on a handle's words from overflowing: a gate
// table of more chunks would not fit in one allocation.
const maxChunks = 1 << 34

// maxWorld likewise.
const maxWorld = 1 << 20

// NewView reads the handle at an address. What is no handle fails the kernel
// with a *HandleError.
func NewView(t *hip.Thread, handle uint64) View {
	v := View{t: t}
	hold := func(field string, addr uint64, words int64) place {
		m, off, err := t.Resolve(addr, words*8)
		if err == nil && addr&7 != 0 {
			err = &hip.AddressError{Addr: addr, Bytes: 8, Unaligned: true}
		}
		if err != nil {
			t.Fail(&HandleError{Addr: handle, Field: field, Value: addr, Want: "an address in registered memory", Err: err})
		}
		return place{m, off}
	}
	v.handle = hold("address", handle, HandleChunkWords)
	field := func(i int, name, want string, low, high uint64) uint64 {
		n := v.handle.word(int64(i) * 8).Load()
		if n < low || n > high {
			t.Fail(&HandleError{Addr: handle, Field: name, Value: n, Want: want})
		}
		return n
	}
	addr := func(i int) uint64 { return v.handle.word(int64(i) * 8).Load() }

	field(HandleVersion, "ABI version", "1, which this program was built for", ABIVersion, ABIVersion)
	v.chunks = int(field(HandleChunks, "chunks", "1 to 2^34", 1, maxChunks))
	v.world = int(field(HandleWorld, "world size", "1 to 2^20", 1, maxWorld))
	v.rank = int(field(HandleRank, "rank", "a rank of the world", 0, uint64(v.world-1)))
	v.round = field(HandleRound, "round", "1 to 2^32-1, set by Start", 1, math.MaxUint32)
	v.first = int(field(HandleFirst, "first own chunk", "at most the number of chunks", 0, uint64(v.chunks)))
	v.own = int(field(HandleOwn, "own chunks", "no more than follow the first", 0, uint64(v.chunks-v.first)))
	v.handle = hold("address", handle, int64(HandleWords(v.chunks)))
	v.gates = hold("gate table", addr(HandleGates), int64(v.chunks)*GateRow/8)
	v.tables = hold("table of gate tables", addr(HandleTables), int64(v.world))
	v.faults = hold("fault row", addr(HandleFaults), FaultRow/8)
	if at := addr(HandleTrace); at != 0 {
		v.trace = hold("trace buffer", at, int64(v.chunks))
	}
	return v
}

// Rank is the rank that the kernel runs for.
func (v *View) Rank() int { return v.rank }

// Round is the round that was started, from 1 on.
func (v *View) Round() uint64 { return v.round }

// World is how many ranks there are.
func (v *View) World() int { return v.world }

// Chunks is how many chunks all ranks have together.
func (v *View) Chunks() int { return v.chunks }

// First is the rank's first chunk.
func (v *View) First() int { return v.first }

// Own is how many chunks the rank has: First up to First + Own - 1.
func (v *View) Own() int { return v.own }

// Writers is how many marks complete a chunk in one round. A chunk that does
// not exist fails the kernel with a *RangeError.
func (v *View) Writers(chunk int) int { return int(v.chunkWord(chunk, 0)) }

// Owner is the rank that a chunk belongs to. A chunk that does not exist fails
// the kernel with a *RangeError.
func (v *View) Owner(chunk int) int { return int(v.chunkWord(chunk, 1)) }

// PeerGates is the address of a rank's gate table: Chunks gate rows. A rank
// that does not exist fails the kernel with a *RangeError.
func (v *View) PeerGates(rank int) uint64 {
	v.inRange("rank", rank, v.world)
	return v.tables.word(int64(rank) * 8).Load()
}

// MarkReady says that this CTA has written its part of a chunk. All threads of
// the CTA call it, outside divergent branches and after their writes; the last
// of the round's writers opens the chunk's gate. A chunk that is not the
// rank's, and a mark beyond the chunk's writers, open nothing and are counted
// in the fault row, which makes the plan's Wait fail.
func (v *View) MarkReady(chunk int) {
	settle(v.t)
	if v.t.Index != 0 {
		return
	}
	if chunk < v.first || chunk-v.first >= v.own {
		v.faults.word(FaultLast).Store(uint64(chunk))
		v.faults.word(FaultForeign).Add(1)
		return
	}
	row := place{v.gates.m, v.gates.off + int64(chunk)*GateRow}
	last := v.round * v.chunkWord(chunk, 0)
	switch marks := countMark(row); {
	case marks == last:
		if v.trace.m != nil {
			v.trace.word(int64(chunk) * 8).Store(uint64(hip.Clock()))
		}
		openGate(row, v.round)
	case marks > last:
		v.faults.word(FaultExtra).Add(1)
	}
	// On a device the grid's other CTAs run at the same time. Without this those
	// of a host kernel would run one after the other, and its chunks would all
	// be complete at the end. A single CTA keeps its processor: who has been woken
	// finds another, if there is one.
	if v.t.Blocks > 1 {
		runtime.Gosched()
	}
}

// Arrived reports whether a chunk of this round is here: arrived, or marked
// ready if it is the rank's own. All threads of the CTA call it and get the
// same answer. Where it is not here, the host platform lets others run, so that
// a kernel may ask again and again. A chunk that does not exist fails the kernel
// with a *RangeError.
func (v *View) Arrived(chunk int) bool {
	gate := v.gate(chunk)
	var open uint64
	if v.t.Index == 0 {
		if v.isOpen(gate.Load()) {
			open = 1
		} else {
			runtime.Gosched() // who is asked for may need the processor
		}
	}
	return v.t.Uniform(open) == 1
}

// Wait returns when Arrived(chunk) holds, and says how often it looked. All
// threads of the CTA call it. When the kernel must end first, it fails with a
// *WaitError.
func (v *View) Wait(chunk int) (polls int) {
	gate := v.gate(chunk)
	if v.t.Index == 0 {
		polls = v.await(chunk, gate)
	}
	return int(v.t.Uniform(uint64(polls)))
}

func (v *View) await(chunk int, gate *hip.Word) (polls int) {
	look := func(w uint64) bool {
		polls++
		return v.isOpen(w)
	}
	if look(gate.Load()) {
		return polls
	}
	if err := v.t.Await(gate, look); err != nil {
		v.t.Fail(&WaitError{Chunk: chunk, Owner: v.Owner(chunk), Round: v.round, Seen: gate.Load(), Err: err})
	}
	return polls
}

// gate is the word that tells this rank of a chunk: the owner has marked it
// ready, or it has arrived here.
func (v *View) gate(chunk int) *hip.Word {
	v.inRange("chunk", chunk, v.chunks)
	off := int64(chunk) * GateRow
	if chunk >= v.first && chunk-v.first < v.own {
		return v.gates.word(off + GateReady)
	}
	return v.gates.word(off + GateArrival)
}

// isOpen compares as copy engines do: the low 32 bits, unsigned.
func (v *View) isOpen(gate uint64) bool { return uint32(gate) >= uint32(v.round) }

func (v *View) chunkWord(chunk, i int) uint64 {
	v.inRange("chunk", chunk, v.chunks)
	return v.handle.word(int64(HandleChunkWords+2*chunk+i) * 8).Load()
}

func (v *View) inRange(what string, i, limit int) {
	if i < 0 || i >= limit {
		v.t.Fail(&RangeError{What: what, Index: i, Limit: limit})
	}
}
