package copyengine

import (
	"errors"
	"fmt"
	"strings"
)

// ErrPutWaits is why nothing can be prepared on a queue: a host Put on it
// waits for its flag, and what is prepared would wait behind it.
var ErrPutWaits = errors.New("copyengine: a Put waits on the queue")

// ErrEnded is returned for use of a queue that its last world has given back.
var ErrEnded = errors.New("copyengine: the queue has ended with its last world; open a new world")

// ErrTorn says that an engine has been told of a part of what was appended to
// its queue. The queue has faulted.
var ErrTorn = errors.New("copyengine: the queue has taken a part of the work")

// errNoRoom says that a Put must wait for earlier ones.
var errNoRoom = errors.New("copyengine: no room for the Put yet")

// Holder is one part of what a queue holds.
type Holder struct {
	World, Plan string // a plan's name is unique in the process
	Rank        int
	Round       uint64
	Cost        int64
}

func (h Holder) String() string {
	return fmt.Sprintf("%s (rank %d, round %d)", h.Plan, h.Rank, h.Round)
}

// CapacityError says that what was asked for does not fit beside what the
// queue holds. Nothing was written.
type CapacityError struct {
	Queue, Unit       string
	Want, Held, Limit int64
	Holders           []Holder
}

func (e *CapacityError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "copyengine: queue %s has no room: %d %s wanted, %d held of a limit of %d", e.Queue, e.Want, e.Unit, e.Held, e.Limit)
	for i, h := range e.Holders {
		b.WriteString([]string{", held by ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%v: %d", h, h.Cost)
	}
	b.WriteString("; send fewer or larger regions, or close a plan that shares the queue")
	return b.String()
}

// ExclusionError says that a host operation was refused because copies are
// prepared on the queue.
type ExclusionError struct {
	Op, Queue string
	Holders   []Holder
}

func (e *ExclusionError) Error() string {
	return fmt.Sprintf("copyengine: %s over queue %s is refused while copies are prepared on it, by %v; finish or close the plan first", e.Op, e.Queue, e.Holders[0])
}

// OrderError says that a plan may not start yet.
type OrderError struct {
	Queue string
	First Holder // what must start first
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("copyengine: %v was prepared earlier on queue %s and has not started; start it first", e.First, e.Queue)
}

// FaultError says that a queue's engine has stopped.
type FaultError struct {
	Queue, Engine string
	Err           error
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("copyengine: queue %s (%s) has faulted and takes no work until its plans are closed: %v", e.Queue, e.Engine, e.Err)
}

func (e *FaultError) Unwrap() error { return e.Err }

// ProbeError says that a new queue did not answer.
type ProbeError struct {
	Queue, Engine string
	Err           error
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("copyengine: queue %s did not carry its probe (%s): %v", e.Queue, e.Engine, e.Err)
}

func (e *ProbeError) Unwrap() error { return e.Err }

// RingError says that a preparation failed among the doorbells: what had been
// rung is on its way and must be flushed.
type RingError struct {
	Rank  int
	Queue string
	Err   error
}

func (e *RingError) Error() string {
	return fmt.Sprintf("copyengine: ringing queue %s of rank %d failed: %v", e.Queue, e.Rank, e.Err)
}

func (e *RingError) Unwrap() error { return e.Err }
