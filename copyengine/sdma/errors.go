package sdma

import (
	"errors"
	"fmt"
)

// Why bytes are not a packet; a *DecodeError is one of these.
var (
	// ErrTruncated: the packet goes on past the bytes there are.
	ErrTruncated = errors.New("truncated packet")
	// ErrUnknown: no packet of this package has that header.
	ErrUnknown = errors.New("unknown packet")
	// ErrUnsupported: a field asks for what this package does not do.
	ErrUnsupported = errors.New("unsupported packet")
	// ErrMalformed: a field has a value that no engine could act on.
	ErrMalformed = errors.New("malformed packet")
)

// DecodeError says why bytes are not a packet.
type DecodeError struct {
	Header uint32 // the first dword, 0 where there is none
	Detail string
	Err    error // ErrTruncated, ErrUnknown, ErrUnsupported or ErrMalformed
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("sdma: %v with header %#08x: %s", e.Err, e.Header, e.Detail)
}

func (e *DecodeError) Unwrap() error { return e.Err }

// FieldError says that a value does not fit the packet's field.
type FieldError struct {
	Op    Op
	Field string
	Got   string
	Limit string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("sdma: %v: the %s is %s; it must be %s", e.Op, e.Field, e.Got, e.Limit)
}

// FullError says that a program does not fit what is free of the ring.
type FullError struct {
	Want int64 // bytes, padding included
	Free int64 // bytes
	Size int64 // bytes of the ring; it is never filled completely
}

func (e *FullError) Error() string {
	if e.Want > e.Size-NOPBytes {
		return fmt.Sprintf("sdma: %d bytes do not fit a ring of %d bytes, even an empty one; prepare less at a time", e.Want, e.Size)
	}
	return fmt.Sprintf("sdma: %d bytes do not fit the %d that are free of the ring's %d; try again when the engine has read on", e.Want, e.Free, e.Size)
}

// RingError says why a ring cannot be made.
type RingError struct{ Detail string }

func (e *RingError) Error() string { return "sdma: ring: " + e.Detail }
