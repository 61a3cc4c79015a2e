package inject

// Step is a place where a failure can be injected.
type Step string

// The steps of a preparation, in the order in which they happen. Gates, Reserve
// and Ring are done for all ranks by the one that came last.
const (
	Validate Step = "validate" // a rank checks its schedule
	Gates    Step = "gates"    // gates are allocated, once for all ranks
	Encode   Step = "encode"   // a rank encodes its chains
	Reserve  Step = "reserve"  // room is reserved on a rank's queues
	Ring     Step = "ring"     // a rank's doorbell is rung
)

// The steps of a round, each in its rank's own goroutine.
const (
	Start    Step = "start"     // a rank starts the round
	Wait     Step = "wait"      // a rank begins to wait for it
	HandBack Step = "hand back" // a rank hands the round's data back
	Close    Step = "close"     // a rank has opened its gates and will wait for the others
)

// Queue is the making of a queue; its rank is the number of the device that the
// queue leads from.
const Queue Step = "queue"

// Func returns the error that step meets on rank, or nil. It may also panic or
// end the goroutine, which is how a rank dies there.
type Func func(step Step, rank int) error

// At is what step meets on rank.
func (f Func) At(step Step, rank int) error {
	if f == nil {
		return nil
	}
	return f(step, rank)
}
