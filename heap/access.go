package heap

import (
	"reflect"
	"unsafe"
)

// Element is what a tensor's element can be in Go. BFloat16 and Float16 are
// their bits, a uint16.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Bytes is the tensor's bytes themselves, in memory that the host reaches. It
// fails with a *StridedError when there are gaps between rows, and with an
// *UnmappedError where the host does not reach them. They are the tensor's only
// as long as its block is held.
func (t *Tensor) Bytes() ([]byte, error) {
	if !t.Contiguous() {
		return nil, &StridedError{Shape: t.Shape(), Strides: t.Strides()}
	}
	var all []byte
	err := t.access(func() error {
		if !t.Memory().Mapped() {
			return &UnmappedError{Rank: t.rank}
		}
		all = t.Memory().Bytes(t.start(), t.Size())
		return nil
	})
	return all, err
}

// Read copies the tensor's elements, row after row without the gaps, into p,
// which is of just that size; the error is a *LengthError if it is not.
func (t *Tensor) Read(p []byte) error { return t.each(p, t.Memory().ReadAt) }

// Write copies p, row after row without gaps, into the tensor. p has the
// tensor's size; the error is a *LengthError if it has not.
func (t *Tensor) Write(p []byte) error { return t.each(p, t.Memory().WriteAt) }

// each pairs the tensor's rows with the bytes of p.
func (t *Tensor) each(p []byte, move func(p []byte, off int64) error) error {
	if t.err == nil && int64(len(p)) != t.Size() {
		return &LengthError{Found: int64(len(p)), Want: t.Size()}
	}
	return t.access(func() error {
		elem := t.dtype.Size()
		rows, width := t.shape[0], int64(t.row*elem)
		if t.Contiguous() {
			rows, width = 1, t.Size()
		}
		for i := range rows {
			if err := move(p[:width], t.start()+int64(i)*int64(t.pitch*elem)); err != nil {
				return err
			}
			p = p[width:]
		}
		return nil
	})
}

// access holds the block while do looks at its bytes.
func (t *Tensor) access(do func() error) error {
	if t.err != nil {
		return t.err
	}
	if !t.block.hold() {
		return t.block.gone()
	}
	defer t.block.Release()
	return do()
}

// start is where the first element is in the rank's memory.
func (t *Tensor) start() int64 { return t.block.span.off + t.off }

// Slice is the elements of a tensor without gaps, in memory that the host
// reaches, as a Go slice: what is written to it is written to the tensor. T is
// the element's own Go type, or the unsigned integer of its size for its bits;
// the error is a *TypeError otherwise, or one of Bytes. The elements are
// the tensor's only as long as its block is held.
func Slice[T Element](t *Tensor) ([]T, error) {
	if kind := reflect.TypeFor[T]().Kind(); t.err == nil && !t.dtype.holds(kind) {
		return nil, &TypeError{DType: t.dtype, Type: reflect.TypeFor[T]().String()}
	}
	all, err := t.Bytes()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	// A block starts on a multiple of Alignment and every element on a
	// multiple of its size after that, so the pointer is aligned.
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(all))), t.Len()), nil
}

// Row is Slice for row i of a tensor that may have gaps between rows. A row
// that is not there is a *SliceError.
func Row[T Element](t *Tensor, i int) ([]T, error) { return Slice[T](t.Rows(i, i+1)) }
