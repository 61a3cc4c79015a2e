package heap_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type failer interface {
	Helper()
	Fatal(...any)
}

// memories are one memory of so many bytes for each rank.
func memories(t failer, ranks int, bytes int64) []*hip.Memory {
	t.Helper()
	platform, err := hip.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	var mems []*hip.Memory
	for rank := range ranks {
		device, err := platform.Device(rank)
		if err != nil {
			t.Fatal(err)
		}
		m, err := device.Alloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		mems = append(mems, m)
	}
	return mems
}

// newHeap is a heap that the caller closes.
func newHeap(t failer, ranks int, bytes int64) *heap.Heap {
	t.Helper()
	h, err := heap.New(memories(t, ranks, bytes))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newTensor(t failer, h *heap.Heap, rank int, dt heap.DType, shape ...int) *heap.Tensor {
	t.Helper()
	n, err := heap.TensorBytes(dt, shape...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	x, err := heap.NewTensor(h, b, rank, dt, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
