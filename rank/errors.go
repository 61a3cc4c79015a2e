package rank

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed is returned for use of a world that is closed.
	ErrClosed = errors.New("rank: the world is closed")
	// ErrReturned is why a rank is gone whose body returned without an error.
	ErrReturned = errors.New("its body has returned")
	// ErrGoexit is the error of a rank whose body called runtime.Goexit.
	ErrGoexit = errors.New("its body called runtime.Goexit")
	// ErrRunning is returned for what a world cannot do while its ranks run.
	ErrRunning = errors.New("rank: the world is running; do it when Run has returned")
	// ErrNoTensor and ErrForeign are why a rank cannot use a tensor.
	ErrNoTensor = errors.New("there is no tensor; make one with Zeros")
	ErrForeign  = errors.New("the tensor is of another world; use one that this world's Zeros made")
)

// TensorError says that a tensor cannot be used for what it was passed to.
type TensorError struct {
	Op   string // the call
	Rank int    // whose tensor it is
	Err  error
}

func (e *TensorError) Error() string {
	return fmt.Sprintf("rank: %s on rank %d: %v", e.Op, e.Rank, e.Err)
}
func (e *TensorError) Unwrap() error { return e.Err }

// ArgumentError says that a kernel cannot be launched with an argument.
type ArgumentError struct {
	Kernel string
	Rank   int
	Index  int // of the argument, from 0
	Err    error
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("rank: launch of %s on rank %d: argument %d: %v", e.Kernel, e.Rank, e.Index, e.Err)
}
func (e *ArgumentError) Unwrap() error { return e.Err }

// Error is the failure of one rank's body.
type Error struct {
	Rank int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// PanicError is a panic that was recovered in a rank's body.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// StuckError says that something had not ended when a world was closed. Its
// memory is not used again.
type StuckError struct {
	World, What string
	After       time.Duration // Config.CloseTimeout
	Err         error         // why nobody waits any more
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("rank: closing %s: %s has not ended, for which it has %v (%v): its copies or kernels are still going on; its memory is not used again", e.World, e.What, e.After, e.Err)
}
func (e *StuckError) Unwrap() error { return e.Err }

// VoteError says that a collective failed on every rank because one of them
// could not do its share.
type VoteError struct {
	Call string
	Rank int // the one that could not
	Err  error
}

func (e *VoteError) Error() string {
	return fmt.Sprintf("rank: %s failed on every rank because of rank %d: %v", e.Call, e.Rank, e.Err)
}
func (e *VoteError) Unwrap() error { return e.Err }

// VerdictError says that a collective failed on every rank because of what the
// ranks brought together, not because of one of them.
type VerdictError struct {
	Call string
	Err  error
}

func (e *VerdictError) Error() string {
	return fmt.Sprintf("rank: %s failed on every rank: %v", e.Call, e.Err)
}
func (e *VerdictError) Unwrap() error { return e.Err }

// MismatchError says that ranks met in different collectives.
type MismatchError struct {
	Rank      int
	Call      string
	OtherRank int
	OtherCall string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank: ranks met in different collectives: rank %d called %s, rank %d called %s; every rank must make the same collective calls in the same order",
		e.OtherRank, e.OtherCall, e.Rank, e.Call)
}

// GoneError says that a rank will not come to a collective.
type GoneError struct {
	Call string
	Rank int // the one that will not come
	Err  error
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("rank: %s cannot complete: rank %d is gone: %v", e.Call, e.Rank, e.Err)
}
func (e *GoneError) Unwrap() error { return e.Err }

// WithdrawnError says that a rank's context ended while it waited in a
// collective for others.
type WithdrawnError struct {
	Call string
	Rank int // the one that stopped waiting
	Err  error
}

func (e *WithdrawnError) Error() string {
	return fmt.Sprintf("rank: %s failed on every rank: rank %d stopped waiting for the others: %v", e.Call, e.Rank, e.Err)
}
func (e *WithdrawnError) Unwrap() error { return e.Err }

// ClosingError says that a collective was refused because a rank is in Close.
type ClosingError struct {
	Call string
	Rank int    // the one in Close
	On   string // what it closes
}

func (e *ClosingError) Error() string {
	return fmt.Sprintf("rank: %s is refused: rank %d has come to Close of %s, which waits for every rank; call Close of %s", e.Call, e.Rank, e.On, e.On)
}

// CrossedError says that two ranks close different things and each would wait
// for the other.
type CrossedError struct {
	Rank      int
	On        string
	OtherRank int
	OtherOn   string
}

func (e *CrossedError) Error() string {
	return fmt.Sprintf("rank: rank %d closes %s while rank %d closes %s: each would wait for the other; close in the same order on every rank (both closings go on: call Close of %s too)",
		e.Rank, e.On, e.OtherRank, e.OtherOn, e.OtherOn)
}

// BusyError says that two goroutines called collectives of one rank at once.
type BusyError struct {
	Rank int
	Call string
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("rank: %s of rank %d is refused: another collective of the rank is going on; one goroutine makes a rank's collective calls", e.Call, e.Rank)
}

// ConfigError says what is wrong with a Config.
type ConfigError struct {
	Field string
	Found any
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("rank: Config.%s is %v; %s", e.Field, e.Found, e.Want)
}

// KernelError says that a kernel cannot run on a rank's device.
type KernelError struct {
	Kernel string
	Rank   int
	Device string
}

func (e *KernelError) Error() string {
	return fmt.Sprintf("rank: kernel %s is not loaded on %s, the device of rank %d: it is no built-in kernel; load its module with kernels.Load and launch what Module.Kernel returns", e.Kernel, e.Device, e.Rank)
}
