package heap

import (
	"fmt"
	"reflect"
)

// DType is the type of a tensor's elements. The zero value is none.
type DType uint8

const (
	BFloat16 DType = iota + 1 // the high half of a Float32; uint16 in Go
	Float16                   // IEEE 754 half precision; uint16 in Go
	Float32
	Float64
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
)

// dtypes has each type's name, size in bytes and Go kind.
var dtypes = [...]struct {
	name string
	size int
	kind reflect.Kind
}{
	BFloat16: {"bfloat16", 2, reflect.Uint16},
	Float16:  {"float16", 2, reflect.Uint16},
	Float32:  {"float32", 4, reflect.Float32},
	Float64:  {"float64", 8, reflect.Float64},
	Int8:     {"int8", 1, reflect.Int8},
	Int16:    {"int16", 2, reflect.Int16},
	Int32:    {"int32", 4, reflect.Int32},
	Int64:    {"int64", 8, reflect.Int64},
	Uint8:    {"uint8", 1, reflect.Uint8},
	Uint16:   {"uint16", 2, reflect.Uint16},
	Uint32:   {"uint32", 4, reflect.Uint32},
	Uint64:   {"uint64", 8, reflect.Uint64},
}

// bits is the Go kind that holds an element of so many bytes uninterpreted.
var bits = map[int]reflect.Kind{1: reflect.Uint8, 2: reflect.Uint16, 4: reflect.Uint32, 8: reflect.Uint64}

// Valid reports whether d is one of the types above.
func (d DType) Valid() bool { return d > 0 && int(d) < len(dtypes) }

// Size is the length of one element in bytes; 0 if d is not valid.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// String is the type's name in lower case, for example "bfloat16".
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// holds reports whether a Go value of kind k is an element of type d or its
// bits.
func (d DType) holds(k reflect.Kind) bool {
	return d.Valid() && (k == dtypes[d].kind || k == bits[d.Size()])
}
