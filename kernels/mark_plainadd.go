//go:build mutant_plainadd

package kernels

import (
	"encoding/binary"

	"github.com/triggeredplans/sluice/hip"
)

func settle(t *hip.Thread) { t.Barrier() }

func countMark(row place) uint64 { // the mutant
	b := row.m.Bytes(row.off+GateWriters, 8)
	n := binary.LittleEndian.Uint64(b) + 1
	binary.LittleEndian.PutUint64(b, n)
	return n
}

func openGate(row place, round uint64) { row.word(GateReady).Store(round) }
