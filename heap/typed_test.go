package heap_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/triggeredplans/sluice/heap"
)

func TestTypedReadAndWriteKeepToTheSlice(t *testing.T) {
	h := newHeap(t, 1, 1<<13)
	defer h.Close()
	whole := newTensor(t, h, 0, heap.Int32, 4, 6)
	all := make([]int32, 24)
	for i := range all {
		all[i] = int32(-i * 1001)
	}
	if err := heap.Write(whole, all); err != nil {
		t.Fatal(err)
	}
	part := whole.Rows(1, 3).Cols(2, 5)
	got := make([]int32, 6)
	if err := heap.Read(part, got); err != nil || !slices.Equal(got, slices.Concat(all[8:11], all[14:17])) {
		t.Fatalf("read %v, %v", got, err)
	}
	bits := []uint32{7, 77, 777, 7777, 77777, 777777}
	if err := heap.Write(part, bits); err != nil {
		t.Fatal(err)
	}
	for i, v := range bits {
		all[8+i/3*6+i%3] = int32(v)
	}
	got = make([]int32, 24)
	if err := heap.Read(whole, got); err != nil || !slices.Equal(got, all) {
		t.Fatalf("read %v, %v; want %v", got, err, all)
	}
}

func TestTypedReadAndWriteRefuseOtherTypesAndLengths(t *testing.T) {
	h := newHeap(t, 1, 1<<13)
	defer h.Close()
	x := newTensor(t, h, 0, heap.Int32, 4)
	var typ *heap.TypeError
	for _, err := range []error{heap.Read(x, make([]float32, 4)), heap.Write(x, make([]int64, 2))} {
		if !errors.As(err, &typ) {
			t.Errorf("got %v", err)
		}
	}
	var length *heap.LengthError
	for _, err := range []error{heap.Read(x, make([]int32, 3)), heap.Write(x, make([]int32, 5)), heap.Read[int32](x, nil)} {
		if !errors.As(err, &length) || length.Want != 16 {
			t.Errorf("got %v", err)
		}
	}
	if err := heap.Read[int32](x.Rows(2, 2), nil); err != nil {
		t.Errorf("nothing of an empty slice: %v", err)
	}
	var slice *heap.SliceError
	if err := heap.Write(x.Rows(2, 5), []float32{1}); !errors.As(err, &slice) {
		t.Errorf("got %v", err)
	}
}
