package heap_test

import (
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/heap"
)

func TestErrorsSayWhatWasFoundAndTheLimit(t *testing.T) {
	for _, c := range []struct {
		err  error
		says string
	}{
		{&heap.MemoryError{Rank: 2, Bytes: 4096, Want: 8192, Why: "not of the size of rank 0's"}, "rank 2's memory of 4096 bytes is not of the size of rank 0's (rank 0 has 8192 bytes, blocks are aligned to 256)"},
		{&heap.MemoryError{Why: "there are no ranks"}, "heap: there are no ranks"},
		{&heap.ExhaustedError{Want: 500, Free: 512, Largest: 256, Size: 1024}, "no room for 500 bytes: the largest free piece has 256, of 512 free in a heap of 1024 bytes"},
		{&heap.SizeError{Bytes: -3}, "a block of -3 bytes; it has at least 1"},
		{&heap.FreedError{Offset: 256, Bytes: 32}, "the 32 bytes at offset 256 have been freed"},
		{&heap.RankError{Rank: 4, Ranks: 4}, "no rank 4; the ranks are 0 to 3"},
		{&heap.ShapeError{DType: heap.Float32, Shape: []int{3, 4}, Bytes: 48, Limit: 40, Why: "it does not fit its block"}, "no tensor of float32 and shape [3 4]: it does not fit its block (48 bytes in 40)"},
		{&heap.ShapeError{DType: 99, Shape: []int{3}, Why: "it has no element type that heap knows"}, "no tensor of DType(99) and shape [3]: it has no element type"},
		{&heap.SliceError{Of: "columns", Lo: 2, Hi: 9, Len: 8}, "columns [2, 9) of a tensor that has 8 columns; a slice keeps to 0 ≤ lo ≤ hi ≤ 8"},
		{&heap.StridedError{Shape: []int{2, 3}, Strides: []int{8, 1}}, "shape [2 3] with strides [8 1] has gaps"},
		{&heap.TypeError{DType: heap.Float32, Type: "int32"}, "elements of float32 are no int32; use float32, or uint32 for their bits"},
		{&heap.TypeError{DType: 0, Type: "int32"}, "elements of DType(0) are no int32"},
		{&heap.LengthError{Found: 12, Want: 16}, "a buffer of 12 bytes for a tensor of 16"},
	} {
		if s := c.err.Error(); !strings.HasPrefix(s, "heap: ") || !strings.Contains(s, c.says) {
			t.Errorf("%T says %q\nwant it to say %q", c.err, s, c.says)
		}
	}
}
