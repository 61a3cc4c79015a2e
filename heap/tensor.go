package heap

import (
	"math"
	"slices"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/schedule"
)

// Tensor is one rank's view of a block: elements of one type in one or more
// dimensions, in row-major order. A row is everything under one index of the
// first dimension; rows may lie further apart than they are long, and have no
// gaps inside. A Tensor never changes.
//
// Slicing and At return one value, so that they chain. A slice out of range
// gives a tensor whose Err says so; it has no elements, and whatever is done
// with it fails with that error.
type Tensor struct {
	block *Block
	rank  int
	dtype DType
	shape []int
	row   int   // elements in a row
	pitch int   // elements from a row to the next
	off   int64 // of the first element, in bytes from the block's start
	err   error
}

// TensorBytes is how many bytes a tensor without gaps takes. It fails with a
// *ShapeError when the type is none, or there is no dimension, or one is below
// 1, or the product is too large.
func TensorBytes(dt DType, shape ...int) (int64, error) {
	fail := func(why string) (int64, error) {
		return 0, &ShapeError{DType: dt, Shape: slices.Clone(shape), Why: why}
	}
	if !dt.Valid() {
		return fail("it has no element type that heap knows")
	}
	if len(shape) == 0 {
		return fail("it has no dimensions; one element has the shape 1")
	}
	n := int64(dt.Size())
	for _, d := range shape {
		if d < 1 {
			return fail("every dimension is at least 1")
		}
		if n > math.MaxInt64/int64(d) {
			return fail("it has more bytes than an int64 can count")
		}
		n *= int64(d)
	}
	return n, nil
}

// NewTensor is rank's view of a block of h, from the block's start and without
// gaps. It fails with a *ShapeError when the shape is none or does not fit the
// block, with a *RankError, a *FreedError, or ErrForeign.
func NewTensor(h *Heap, b *Block, rank int, dt DType, shape ...int) (*Tensor, error) {
	n, err := TensorBytes(dt, shape...)
	if err != nil {
		return nil, err
	}
	if err := h.rank(rank); err != nil {
		return nil, err
	}
	if b == nil || b.heap != h {
		return nil, ErrForeign
	}
	if b.freed.Load() {
		return nil, b.gone()
	}
	if n > b.bytes {
		return nil, &ShapeError{DType: dt, Shape: slices.Clone(shape), Bytes: n, Limit: b.bytes, Why: "it does not fit its block"}
	}
	row := product(shape[1:])
	return &Tensor{block: b, rank: rank, dtype: dt, shape: slices.Clone(shape), row: row, pitch: row}, nil
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Err is why the tensor cannot be used, nil if it can: a *SliceError or
// *RankError from how it was made, or a *FreedError since its block was freed.
func (t *Tensor) Err() error {
	if t.err != nil {
		return t.err
	}
	if t.block.freed.Load() {
		return t.block.gone()
	}
	return nil
}

// invalid is a tensor that carries err and has no elements.
func (t *Tensor) invalid(err error) *Tensor {
	return &Tensor{block: t.block, rank: t.rank, dtype: t.dtype, shape: make([]int, len(t.shape)), err: err}
}

// Rows is the part [lo, hi) of the first dimension. It may be empty.
func (t *Tensor) Rows(lo, hi int) *Tensor {
	if t.err != nil {
		return t
	}
	if lo < 0 || hi < lo || hi > t.shape[0] {
		return t.invalid(&SliceError{Of: "rows", Lo: lo, Hi: hi, Len: t.shape[0]})
	}
	s := *t
	s.shape = slices.Clone(t.shape)
	s.shape[0] = hi - lo
	s.off += int64(lo) * int64(t.pitch) * int64(t.dtype.Size())
	return &s
}

// Cols is the part [lo, hi) of the second dimension. It may be empty.
func (t *Tensor) Cols(lo, hi int) *Tensor {
	if t.err != nil {
		return t
	}
	if len(t.shape) < 2 {
		return t.invalid(&SliceError{Of: "columns", Lo: lo, Hi: hi})
	}
	if lo < 0 || hi < lo || hi > t.shape[1] {
		return t.invalid(&SliceError{Of: "columns", Lo: lo, Hi: hi, Len: t.shape[1]})
	}
	s := *t
	s.shape = slices.Clone(t.shape)
	s.shape[1] = hi - lo
	under := product(t.shape[2:])
	s.row = (hi - lo) * under
	s.off += int64(lo) * int64(under) * int64(t.dtype.Size())
	return &s
}

// At is the same tensor on another rank.
func (t *Tensor) At(rank int) *Tensor {
	if t.err != nil {
		return t
	}
	if err := t.block.heap.rank(rank); err != nil {
		return t.invalid(err)
	}
	s := *t
	s.rank = rank
	return &s
}

// DType is the type of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape is the number of elements in each dimension.
func (t *Tensor) Shape() []int { return slices.Clone(t.shape) }

// Strides is, for each dimension, how many elements lie from one index to the
// next.
func (t *Tensor) Strides() []int {
	s := make([]int, len(t.shape))
	s[0] = t.pitch
	for n, i := 1, len(s)-1; i > 0; i-- {
		s[i] = n
		n *= t.shape[i]
	}
	return s
}

// Len is the number of elements.
func (t *Tensor) Len() int { return product(t.shape) }

// Size is the length of the elements in bytes, without the gaps between rows.
func (t *Tensor) Size() int64 { return int64(t.Len()) * int64(t.dtype.Size()) }

// Rank is the rank whose memory the tensor is in.
func (t *Tensor) Rank() int { return t.rank }

// Block is the allocation that the tensor is a view of.
func (t *Tensor) Block() *Block { return t.block }

// Memory is the memory that the tensor is in; its first element is at
// Block().Offset() + Offset() there.
func (t *Tensor) Memory() *hip.Memory { return t.block.heap.mems[t.rank] }

// Offset is where the first element is, in bytes from the block's start.
func (t *Tensor) Offset() int64 { return t.off }

// Addr is the address of the first element on the tensor's rank; 0 if the
// tensor is not valid.
func (t *Tensor) Addr() uint64 {
	if t.err != nil {
		return 0
	}
	return t.Memory().Addr() + uint64(t.block.span.off+t.off)
}

// Contiguous reports whether there are no gaps between the rows.
func (t *Tensor) Contiguous() bool { return t.shape[0] <= 1 || t.pitch == t.row }

// Window is the tensor as rows of bytes, with offsets from the block's start.
// Dimensions after the second are part of the columns; a tensor with one
// dimension has rows of one element.
func (t *Tensor) Window() schedule.Window {
	if t.err != nil {
		return schedule.Window{}
	}
	elem := t.dtype.Size()
	return schedule.Window{Offset: t.off, Rows: t.shape[0], Cols: t.row, Elem: elem, Pitch: int64(t.pitch) * int64(elem)}
}
