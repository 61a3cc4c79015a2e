//go:build !mutant_nobarrier && !mutant_plainadd && !mutant_plainstore

package kernels

import "github.com/triggeredplans/sluice/hip"

// The three steps of a mark that order data before its gate. Each has a mutant
// behind a build tag, which tests must catch.

// settle has every thread's writes seen by the thread that counts the mark.
func settle(t *hip.Thread) { t.Barrier() }

// countMark publishes the CTA's writes, sees those of the writers before it,
// and returns the marks so far.
func countMark(row place) uint64 { return row.word(GateWriters).Add(1) }

// openGate publishes what all writers wrote.
func openGate(row place, round uint64) { row.word(GateReady).Store(round) }
