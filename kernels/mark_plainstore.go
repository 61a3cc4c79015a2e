//go:build mutant_plainstore

package kernels

import (
	"encoding/binary"

	"github.com/triggeredplans/sluice/hip"
)

func settle(t *hip.Thread) { t.Barrier() }

func countMark(row place) uint64 { return row.word(GateWriters).Add(1) }

func openGate(row place, round uint64) { // the mutant
	binary.LittleEndian.PutUint64(row.m.Bytes(row.off+GateReady, 8), round)
}
