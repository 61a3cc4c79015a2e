package inject

// Step is a place where a failure can be injected.
type Step string

// The steps of a preparation, in the order in which they happen.
const (
	Validate Step = "validate" // a rank checks its schedule
	Gates    Step = "gates"    // gates are allocated, once for all ranks
	Encode   Step = "encode"   // a rank encodes its chains
	Reserve  Step = "reserve"  // room is reserved on a rank's queues
	Ring     Step = "ring"     // a rank's doorbell is rung
)

// Func returns the error that step meets on rank, or nil.
type Func func(step Step, rank int) error

// At is what step meets on rank.
func (f Func) At(step Step, rank int) error {
	if f == nil {
		return nil
	}
	return f(step, rank)
}
