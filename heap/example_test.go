package heap_test

import (
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// must keeps the examples short.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func Example() {
	platform := must(hip.Open("host"))
	var mems []*hip.Memory
	for rank := range 2 {
		mems = append(mems, must(must(platform.Device(rank)).Alloc(1<<16)))
	}
	h := must(heap.New(mems))
	defer h.Close()

	block := must(h.Alloc(must(heap.TensorBytes(heap.Float32, 4, 8))))
	for rank := range h.Ranks() {
		out := must(heap.NewTensor(h, block, rank, heap.Float32, 4, 8))
		mine := out.Rows(2*rank, 2*rank+2) // this rank's rows
		elements := must(heap.Slice[float32](mine))
		for i := range elements {
			elements[i] = float32(100*rank + i)
		}
		fmt.Println("rank", rank, "sends", mine.Window(), "starting with", elements[:3])
	}
	// Output:
	// rank 0 sends {0 2 8 4 32} starting with [0 1 2]
	// rank 1 sends {64 2 8 4 32} starting with [100 101 102]
}

func ExampleTensor_Rows() {
	h := must(heap.New([]*hip.Memory{must(must(must(hip.Open("host")).Device(0)).Alloc(4096))}))
	defer h.Close()
	out := must(heap.NewTensor(h, must(h.Alloc(64)), 0, heap.Int32, 4, 4))
	// Slices chain; one that reaches outside says so when it is used.
	fmt.Println(out.Rows(1, 3).Cols(2, 4).Shape())
	fmt.Println(out.Rows(3, 5).Cols(0, 2).Err())
	// Output:
	// [2 2]
	// heap: rows [3, 5) of a tensor that has 4 rows; a slice keeps to 0 ≤ lo ≤ hi ≤ 4
}
