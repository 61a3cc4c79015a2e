package kernels

import "fmt"

// HandleError says that a kernel was given something that is no handle.
type HandleError struct {
	Addr  uint64 // of the handle
	Field string // what is wrong in it
	Value uint64 // what it holds
	Want  string
	Err   error // why an address cannot be used, or nil
}

func (e *HandleError) Error() string {
	const advice = "pass the handle that the plan's Start returned"
	if e.Err != nil {
		return fmt.Sprintf("kernels: the handle at %#x has %s %#x, want %s: %v; %s", e.Addr, e.Field, e.Value, e.Want, e.Err, advice)
	}
	return fmt.Sprintf("kernels: the handle at %#x has %s %d, want %s; %s", e.Addr, e.Field, e.Value, e.Want, advice)
}

func (e *HandleError) Unwrap() error { return e.Err }

// RangeError says that a kernel asked its view for a chunk or a rank that the
// plan does not have.
type RangeError struct {
	What  string // "chunk" or "rank"
	Index int
	Limit int // how many there are
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("kernels: there is no %s %d; the plan has 0 to %d", e.What, e.Index, e.Limit-1)
}

// WaitError says that a kernel had to end while it waited for a chunk.
type WaitError struct {
	Chunk int
	Owner int    // the rank whose chunk it is
	Round uint64 // waited for
	Seen  uint64 // the round the gate was at
	Err   error  // why the wait ended
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("kernels: waiting for chunk %d of rank %d: its gate is at round %d, want %d: %v", e.Chunk, e.Owner, e.Seen, e.Round, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// ArgumentError says that a built-in kernel cannot use an argument.
type ArgumentError struct {
	Kernel   string
	Argument string // its name
	Why      string
	Err      error // the cause, or nil
}

func (e *ArgumentError) Error() string {
	s := fmt.Sprintf("kernels: %s: argument %s: %s", e.Kernel, e.Argument, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ArgumentError) Unwrap() error { return e.Err }

// RegionError says that a region of a buffer has no sense or lies outside
// registered memory.
type RegionError struct {
	Buffer uint64 // address
	Region Region
	Why    string
	Err    error // the cause, or nil
}

func (e *RegionError) Error() string {
	r := e.Region
	s := fmt.Sprintf("kernels: %d rows of %d bytes, %d apart, at offset %d of the buffer at %#x: %s", r.Height, r.Width, r.Pitch, r.Offset, e.Buffer, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *RegionError) Unwrap() error { return e.Err }
