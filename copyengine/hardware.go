package copyengine

import (
	"context"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/histogram"
)

// Copy moves Height rows of Width bytes. Rows are SrcPitch and DstPitch bytes
// apart; with one row, or rows that touch on both sides, it is one linear copy.
type Copy struct {
	Src, Dst           uint64 // addresses
	Width, Height      int64
	SrcPitch, DstPitch int64
}

// Step is what a queue does for one chunk: wait until the low 32 bits of the
// word at Gate are at least the round, copy, then add 1 to the 64-bit word at
// Signal. A Gate or Signal of 0 is left out.
//
// Began, Ended and Arrived, if not 0, are addresses of 64-bit words into which
// the queue writes its clock before the first copy, behind the last one and
// behind the signal, where its platform can: Properties.ClockHertz says what it
// counts in. That costs room on the queue.
type Step struct {
	Gate   uint64
	Copies []Copy
	Signal uint64
	// Rounds says that both words are a plan's, which never stand further back
	// than the round before: then an engine may compare cyclically, and store
	// the round instead of adding to the one before.
	Rounds bool

	Began, Ended, Arrived uint64
}

// Chain is what one plan sends over one queue in a round, in order.
type Chain []Step

// Program is a chain in the form that the hardware takes. It is made once; a
// round only patches what its gates are compared with.
type Program interface {
	// Cost is what the program holds of the queue while it is prepared, in the
	// queue's unit.
	Cost() int64
	// Batched is how many of its copies the queue carries in batches, if it
	// bounds these as well.
	Batched() int64
	// SetRound patches what the gates are compared with.
	SetRound(round uint32)
	// Copies and Bytes are what one run of it moves.
	Copies() int
	Bytes() int64
}

// Limits are what a queue can hold.
type Limits struct {
	Unit     string // what cost is counted in, for example "bytes"
	Capacity int64
	Prepared int64 // most that prepared copies may hold
	Puts     int64 // most that puts in flight may hold
	// Batched is the most copies in batches that prepared copies may hold at the
	// same time, and puts as many again; 0 if the queue does not bound them.
	Batched int64
}

// Hardware is one queue as its platform makes it. Append, Ring and Rollback
// are called under the queue's lock; the others at any time.
type Hardware interface {
	Limits() Limits
	// Engine names what moves the data, for people.
	Engine() string
	// Probe carries a fence through the queue, which has nothing else to do, and
	// waits for it under ctx.
	Probe(ctx context.Context) error
	Compile(Chain) (Program, error)
	// Append writes the program behind what is there, without telling the
	// engine, and returns the position at whose passing the program is done.
	Append(Program) (end uint64, err error)
	// Ring tells the engine of all that was appended. The error wraps ErrTorn if
	// the engine has been told of a part.
	Ring() error
	// Rollback takes back what was appended since the last Ring.
	Rollback()
	// Passed is the position up to which the engine has executed everything.
	Passed() uint64
	// Watch has w woken when Passed grows.
	Watch(w *hip.Waiter)
	// Stats counts what the engine has done.
	Stats() Stats
	// Close ends the engine, whatever it is doing, and frees the queue.
	Close()
}

// Stats is what an engine has done since it was made.
type Stats struct {
	Copies, Bytes uint64
	// GateWaits counts the gates that were closed when the engine came to them,
	// and GateWaited is the time it waited there.
	GateWaits  uint64
	GateWaited time.Duration
	// GateWait has each wait at a closed gate that has ended, Delivery the time
	// from the opening of a gate (or, if it was open already, from when the engine
	// came to it) to the signal. Both stay empty where a platform cannot tell.
	GateWait, Delivery histogram.Snapshot
}
