package plan

import (
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// layout is where things lie in the block that a plan allocates at the same
// offset on every rank: the gate table, the handle, the addresses of all
// ranks' gate tables, the fault row and, if the plan is traced, the stamps.
// Offsets are from the block's start; that of stamps is 0 if there are none.
// What a Wait looks at lies together, so that one read gets all of it.
type layout struct {
	handle, tables, faults, stamps int64
	bytes                          int64
}

func newLayout(chunks, ranks int, traced bool) layout {
	var l layout
	end := int64(chunks) * kernels.GateRow
	place := func(n int64) int64 {
		at := end
		end = (end + n + kernels.GateRow - 1) &^ (kernels.GateRow - 1)
		return at
	}
	l.faults = place(kernels.FaultRow)
	l.handle = place(8 * int64(kernels.HandleWords(chunks)))
	l.tables = place(8 * int64(ranks))
	if traced {
		l.stamps = place(8 * int64(stampWords(chunks, ranks)))
	}
	l.bytes = end
	return l
}

// table is one rank's gate table with what lies behind it.
type table struct {
	mem  *hip.Memory
	base int64 // of the block in the memory
	at   layout
	// seen is the gates and fault row as the last look found them, where the
	// host cannot read them in place; nil where it can. Gates only grow, so a
	// gate that was seen open is open.
	seen []uint64
}

// viewed is the table for one rank to look at.
func (t table) viewed() table {
	if !t.mem.Mapped() {
		t.seen = make([]uint64, (t.at.faults+kernels.FaultRow)/8)
	}
	return t
}

// look brings seen up to date.
func (t *table) look() error {
	if t.seen == nil {
		return nil
	}
	return t.mem.LoadWords(t.base, 8, t.seen)
}

// word is a word of the gates or the fault row, off bytes from the block's
// start.
func (t *table) word(off int64) uint64 {
	if t.seen != nil {
		return t.seen[off/8]
	}
	return t.mem.Word(t.base + off).Load()
}

// gate is the offset in the memory of a field of chunk's gate row.
func (t table) gate(chunk int, field int64) int64 {
	return t.base + int64(chunk)*kernels.GateRow + field
}

func (t table) addr(off int64) uint64 { return t.mem.Addr() + uint64(off) }

// load is a field of chunk's gate row.
func (t *table) load(chunk int, field int64) uint64 {
	return t.word(int64(chunk)*kernels.GateRow + field)
}

// fault is a word of the rank's fault row.
func (t *table) fault(field int64) uint64 { return t.word(t.at.faults + field) }

// reached says whether a gate's word has come to round; engines and kernels
// compare the low 32 bits, unsigned.
func reached(v, round uint64) bool { return uint32(v) >= uint32(round) }

// init writes the rank's gates as they stand before round first, its handle
// and its fault row.
func (t table) init(s *shared, rank int, first uint64) error {
	all := make([]uint64, t.at.bytes/8)
	for c := range s.chunks {
		row := all[c*kernels.GateRow/8:]
		row[kernels.GateReady/8], row[kernels.GateArrival/8] = first-1, first-1
		row[kernels.GateWriters/8] = (first - 1) * uint64(s.chunks[c].writers)
	}
	h := all[t.at.handle/8:]
	h[kernels.HandleVersion] = kernels.ABIVersion
	h[kernels.HandleChunks] = uint64(len(s.chunks))
	h[kernels.HandleRank] = uint64(rank)
	h[kernels.HandleRound] = first
	h[kernels.HandleGates] = t.addr(t.base)
	h[kernels.HandleWorld] = uint64(len(s.parts))
	h[kernels.HandleFirst] = uint64(s.parts[rank].first)
	h[kernels.HandleOwn] = uint64(len(s.parts[rank].own))
	h[kernels.HandleTables] = t.addr(t.base + t.at.tables)
	h[kernels.HandleFaults] = t.addr(t.base + t.at.faults)
	if t.at.stamps != 0 {
		h[kernels.HandleTrace] = t.addr(t.base + t.at.stamps)
	}
	for c, ch := range s.chunks {
		h[kernels.HandleChunkWords+2*c] = uint64(ch.writers)
		h[kernels.HandleChunkWords+2*c+1] = uint64(ch.owner)
	}
	for r, o := range s.tables {
		all[t.at.tables/8+int64(r)] = o.addr(o.base)
	}
	return t.mem.StoreWords(t.base, 8, all)
}

// begin writes the round into the rank's handle.
func (t table) begin(round uint64) error {
	return t.mem.StoreWord(t.base+t.at.handle+8*kernels.HandleRound, round)
}

// open opens the gates of chunks [first, first+n), with exactly the round that
// is prepared.
func (t table) open(first, n int, round uint64) error {
	if n == 0 {
		return nil
	}
	rounds := make([]uint64, n)
	for i := range rounds {
		rounds[i] = round
	}
	return t.mem.StoreWords(t.gate(first, kernels.GateReady), kernels.GateRow, rounds)
}
