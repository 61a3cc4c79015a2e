package heap

import (
	"reflect"
	"unsafe"
)

// Write copies src, row after row, into the tensor, wherever its memory is. T
// is as in Slice; the error is a *TypeError, or a *LengthError if src is not
// just as long as the tensor.
func Write[T Element](t *Tensor, src []T) error {
	b, err := raw(t, src)
	if err != nil {
		return err
	}
	return t.Write(b)
}

// Read copies the tensor's elements, row after row, to dst, wherever its
// memory is. Types and errors are those of Write.
func Read[T Element](t *Tensor, dst []T) error {
	b, err := raw(t, dst)
	if err != nil {
		return err
	}
	return t.Read(b)
}

// raw is the bytes of elements of t's type.
func raw[T Element](t *Tensor, s []T) ([]byte, error) {
	typ := reflect.TypeFor[T]()
	if t.err == nil && !t.dtype.holds(typ.Kind()) {
		return nil, &TypeError{DType: t.dtype, Type: typ.String()}
	}
	n := len(s) * int(typ.Size())
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), n), nil
}
