package sdma

import "github.com/triggeredplans/sluice/hip"

// Doorbell tells an engine how far its ring is written.
type Doorbell interface {
	// Ring passes the count of bytes that have ever been written.
	Ring(count uint64)
}

// WordDoorbell is a doorbell that is a word in memory.
type WordDoorbell struct{ Word *hip.Word }

// Ring stores the count in the word.
func (d WordDoorbell) Ring(count uint64) { d.Word.Store(count) }
