package heap

import (
	"errors"
	"fmt"
)

// ErrClosed is what Alloc of a closed heap fails with.
var ErrClosed = errors.New("heap: it is closed and allocates no more")

// ErrForeign is what NewTensor fails with when the block is not the heap's.
var ErrForeign = errors.New("heap: a tensor is a view of a block that this heap allocated")

// MemoryError says that memories do not make a symmetric heap.
type MemoryError struct {
	Rank        int
	Bytes, Want int64 // the memory's size, and rank 0's
	Why         string
}

func (e *MemoryError) Error() string {
	if e.Want == 0 {
		return "heap: " + e.Why
	}
	return fmt.Sprintf("heap: rank %d's memory of %d bytes is %s (rank 0 has %d bytes, blocks are aligned to %d)", e.Rank, e.Bytes, e.Why, e.Want, Alignment)
}

// ExhaustedError says that no piece of the heap is large enough.
type ExhaustedError struct {
	Want    int64 // bytes asked for
	Free    int64 // bytes free in all
	Largest int64 // bytes of the largest free piece
	Size    int64 // bytes of the heap
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("heap: no room for %d bytes: the largest free piece has %d, of %d free in a heap of %d bytes per rank; free tensors that are done with or make the heap larger",
		e.Want, e.Largest, e.Free, e.Size)
}

// SizeError says that a block was asked for without bytes.
type SizeError struct{ Bytes int64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("heap: a block of %d bytes; it has at least 1", e.Bytes)
}

// FreedError says that a block was used after it was freed.
type FreedError struct{ Offset, Bytes int64 }

func (e *FreedError) Error() string {
	return fmt.Sprintf("heap: the %d bytes at offset %d have been freed; use a tensor only before its Free", e.Bytes, e.Offset)
}

// RankError says that the heap has no such rank.
type RankError struct{ Rank, Ranks int }

func (e *RankError) Error() string {
	return fmt.Sprintf("heap: there is no rank %d; the ranks are 0 to %d", e.Rank, e.Ranks-1)
}

// ShapeError says that a tensor cannot have the type and shape asked for.
type ShapeError struct {
	DType        DType
	Shape        []int
	Bytes, Limit int64 // what it takes and what there is, if that is what is wrong
	Why          string
}

func (e *ShapeError) Error() string {
	s := fmt.Sprintf("heap: no tensor of %v and shape %v: %s", e.DType, e.Shape, e.Why)
	if e.Limit > 0 {
		s += fmt.Sprintf(" (%d bytes in %d)", e.Bytes, e.Limit)
	}
	return s
}

// SliceError says that a slice reaches outside its tensor.
type SliceError struct {
	Of          string // "rows" or "columns"
	Lo, Hi, Len int
}

func (e *SliceError) Error() string {
	return fmt.Sprintf("heap: %s [%d, %d) of a tensor that has %d %s; a slice keeps to 0 ≤ lo ≤ hi ≤ %d", e.Of, e.Lo, e.Hi, e.Len, e.Of, e.Len)
}

// StridedError says that a tensor with gaps between rows was asked for as one
// range.
type StridedError struct{ Shape, Strides []int }

func (e *StridedError) Error() string {
	return fmt.Sprintf("heap: the tensor of shape %v with strides %v has gaps between its rows; take them one by one (Row), or use Read and Write", e.Shape, e.Strides)
}

// TypeError says that a tensor's elements are not of a Go type.
type TypeError struct {
	DType DType
	Type  string
}

func (e *TypeError) Error() string {
	if !e.DType.Valid() {
		return fmt.Sprintf("heap: elements of %v are no %s", e.DType, e.Type)
	}
	return fmt.Sprintf("heap: elements of %v are no %s; use %v, or %v for their bits", e.DType, e.Type, dtypes[e.DType].kind, bits[e.DType.Size()])
}

// LengthError says that a buffer is not of the tensor's size.
type LengthError struct{ Found, Want int64 } // bytes

func (e *LengthError) Error() string {
	return fmt.Sprintf("heap: a buffer of %d bytes for a tensor of %d; they must be equal", e.Found, e.Want)
}

// UnmappedError says that a tensor's bytes cannot be used in place.
type UnmappedError struct{ Rank int }

func (e *UnmappedError) Error() string {
	return fmt.Sprintf("heap: rank %d's memory is its device's, which the host does not reach in place; use Read and Write", e.Rank)
}
