package schedule

import (
	"errors"
	"fmt"
)

// What an Error can be about, for errors.Is.
var (
	ErrSize    = errors.New("schedule: a size that is zero, negative or too large")
	ErrPitch   = errors.New("schedule: a pitch below the width or above the device's limit")
	ErrBounds  = errors.New("schedule: a region outside the buffer")
	ErrCopy    = errors.New("schedule: a copy larger than the device makes")
	ErrWriters = errors.New("schedule: a number of writers that no producer has")
	ErrOrder   = errors.New("schedule: an order that is not a permutation of the tiles")
)

// Error is what is wrong with a schedule or with what a builder was given.
type Error struct {
	Kind          error  // one of the Err values above
	Chunk, Region int    // where; −1 if it is not about one chunk or region
	Found, Limit  int64  // the figure that is wrong and the one it had to keep to
	Detail        string // what was found, and what to do
}

func (e *Error) Error() string {
	switch {
	case e.Chunk < 0:
		return "schedule: " + e.Detail
	case e.Region < 0:
		return fmt.Sprintf("schedule: chunk %d: %s", e.Chunk, e.Detail)
	}
	return fmt.Sprintf("schedule: chunk %d, region %d: %s", e.Chunk, e.Region, e.Detail)
}

// Unwrap gives the Kind, so that errors.Is finds it.
func (e *Error) Unwrap() error { return e.Kind }

// wrong is an Error about a builder's arguments.
func wrong(kind error, found, limit int64, format string, args ...any) *Error {
	return &Error{Kind: kind, Chunk: -1, Region: -1, Found: found, Limit: limit, Detail: fmt.Sprintf(format, args...)}
}
