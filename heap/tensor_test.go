package heap_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/schedule"
)

func TestSlicesSeeTheElementsThatTheirIndexesName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "shape")
		h := newHeap(t, 1, 1<<14)
		defer h.Close()
		newTensor(t, h, 0, heap.Uint8, rapid.IntRange(1, 300).Draw(t, "before"))
		whole := newTensor(t, h, 0, heap.Uint16, shape...)
		flat, err := heap.Slice[uint16](whole)
		if err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint16().Draw(t, "seed")
		for i := range flat {
			flat[i] = seed + uint16(i)
		}
		lo, hi := make([]int, len(shape)), slices.Clone(shape)
		part := whole
		for range rapid.IntRange(0, 3).Draw(t, "slices") {
			dim := rapid.IntRange(0, min(1, len(shape)-1)).Draw(t, "dimension")
			a := rapid.IntRange(0, hi[dim]-lo[dim]).Draw(t, "lo")
			b := rapid.IntRange(a, hi[dim]-lo[dim]).Draw(t, "hi")
			lo[dim], hi[dim] = lo[dim]+a, lo[dim]+b
			if dim == 0 {
				part = part.Rows(a, b)
			} else {
				part = part.Cols(a, b)
			}
		}
		if err := part.Err(); err != nil {
			t.Fatal(err)
		}
		check(t, part, seed, shape, lo, hi)
	})
}

// check reads the part [lo, hi) of a tensor whose elements count up from seed,
// in all the ways there are.
func check(t *rapid.T, part *heap.Tensor, seed uint16, shape, lo, hi []int) {
	index := func(at []int) (i int) { // in the whole tensor
		for d := range shape {
			i = i*shape[d] + at[d]
		}
		return i
	}
	var want []uint16
	strides, size := part.Strides(), make([]int, len(shape))
	for d := range shape {
		size[d] = hi[d] - lo[d]
	}
	if !slices.Equal(part.Shape(), size) {
		t.Fatalf("shape %v, want %v", part.Shape(), size)
	}
	var walk func(at []int)
	walk = func(at []int) {
		if d := len(at); d < len(shape) {
			for i := lo[d]; i < hi[d]; i++ {
				walk(append(slices.Clone(at), i))
			}
			return
		}
		want = append(want, seed+uint16(index(at)))
		off := part.Offset()
		for d := range at {
			off += int64(2 * strides[d] * (at[d] - lo[d]))
		}
		if off != int64(2*index(at)) {
			t.Fatalf("strides %v put element %v at byte %d", strides, at, off)
		}
	}
	walk(nil)
	if part.Len() != len(want) || part.Size() != int64(2*len(want)) {
		t.Fatalf("%d elements in %d bytes, want %d", part.Len(), part.Size(), len(want))
	}
	p := make([]byte, part.Size())
	if err := part.Read(p); err != nil {
		t.Fatal(err)
	}
	for i, v := range want {
		if got := uint16(p[2*i]) | uint16(p[2*i+1])<<8; got != v {
			t.Fatalf("element %d is %d, want %d", i, got, v)
		}
	}
	var rows []uint16
	for i := range size[0] {
		row, err := heap.Row[uint16](part, i)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row...)
	}
	if !slices.Equal(rows, want) {
		t.Fatalf("rows give %v, want %v", rows, want)
	}
	all, err := heap.Slice[uint16](part)
	var strided *heap.StridedError
	if part.Contiguous() != (err == nil) || err != nil && !errors.As(err, &strided) || err == nil && !slices.Equal(all, want) {
		t.Fatalf("contiguous %v: %v, %v; want %v", part.Contiguous(), all, err, want)
	}
	if len(want) == 0 {
		return
	}
	// What a schedule sends of the window is the part and nothing else.
	s, err := schedule.Whole(part.Window(), 1, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(part.Block().Bytes(), 0); err != nil {
		t.Fatal(err)
	}
	var sent []uint16
	for _, r := range s[0].Regions {
		for row := range r.Height {
			for b := int64(0); b < r.Width; b += 2 {
				sent = append(sent, seed+uint16((r.Offset+row*r.Pitch+b)/2))
			}
		}
	}
	if !slices.Equal(sent, want) {
		t.Fatalf("the window sends %v, want %v", sent, want)
	}
}

func TestWriteTouchesTheSliceAndNothingElse(t *testing.T) {
	h := newHeap(t, 1, 1<<14)
	defer h.Close()
	whole := newTensor(t, h, 0, heap.Uint8, 10, 20)
	all, err := whole.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for round := range byte(3) {
		for i := range all {
			all[i] = 100 + round
		}
		part := whole.Rows(2, 7).Cols(5, 9)
		p := make([]byte, part.Size())
		for i := range p {
			p[i] = byte(i)*3 + round
		}
		if err := part.Write(p); err != nil {
			t.Fatal(err)
		}
		for i, v := range all {
			r, c := i/20-2, i%20-5
			want := 100 + round
			if r >= 0 && r < 5 && c >= 0 && c < 4 {
				want = p[r*4+c]
			}
			if v != want {
				t.Fatalf("round %d, row %d, column %d: %d, want %d", round, i/20, i%20, v, want)
			}
		}
	}
}

func TestReadAndWriteMoveMoreThanOnePiece(t *testing.T) {
	const n = 5<<20 + 3
	h := newHeap(t, 1, 6<<20)
	defer h.Close()
	x := newTensor(t, h, 0, heap.Uint8, n)
	p, got := make([]byte, n), make([]byte, n)
	for i := range p {
		p[i] = byte(i * i >> 7)
	}
	if err := errors.Join(x.Write(p), x.Read(got)); err != nil || !slices.Equal(p, got) {
		t.Fatalf("what was written was not read: %v", err)
	}
}

func TestATensorIsAtTheSameOffsetOnEveryRank(t *testing.T) {
	h := newHeap(t, 3, 1<<13)
	defer h.Close()
	newTensor(t, h, 0, heap.Float64, 5)
	mine := newTensor(t, h, 1, heap.Float32, 4, 8).Rows(1, 3).Cols(2, 5)
	for rank := range 3 {
		x := mine.At(rank)
		want := h.Memory(rank).Addr() + 256 + 4*(8+2)
		if x.Err() != nil || x.Rank() != rank || x.Addr() != want || x.Memory() != h.Memory(rank) || x.Offset() != 40 {
			t.Errorf("rank %d: address %#x, want %#x", rank, x.Addr(), want)
		}
		if err := x.Write([]byte(fmt.Sprintf("%-24d", rank*7+1))); err != nil {
			t.Error(err)
		}
	}
	for rank := range 3 {
		p := make([]byte, 24)
		if err := mine.At(rank).Read(p); err != nil || string(p) != fmt.Sprintf("%-24d", rank*7+1) {
			t.Errorf("rank %d has %q, %v", rank, p, err)
		}
	}
	if w := mine.Window(); w != (schedule.Window{Offset: 40, Rows: 2, Cols: 3, Elem: 4, Pitch: 32}) {
		t.Errorf("window %+v", w)
	}
}

// uses are all ways to use a tensor that can fail.
func uses(x *heap.Tensor) map[string]error {
	_, bytes := x.Bytes()
	_, slice := heap.Slice[uint16](x)
	_, row := heap.Row[uint16](x, 0)
	return map[string]error{
		"Err": x.Err(), "Bytes": bytes, "Slice": slice, "Row": row,
		"Read": x.Read(nil), "Write": x.Write(nil),
		"Rows": x.Rows(0, 0).Err(), "Cols": x.Cols(0, 0).Err(), "At": x.At(0).Err(),
	}
}

func TestAWrongSliceFailsWhereverItIsUsed(t *testing.T) {
	h := newHeap(t, 2, 1<<13)
	defer h.Close()
	x := newTensor(t, h, 1, heap.Uint16, 6, 4)
	line := newTensor(t, h, 1, heap.Uint16, 6)
	for name, c := range map[string]struct {
		part *heap.Tensor
		want error
	}{
		"rows past the end":     {x.Rows(3, 7), &heap.SliceError{Of: "rows", Lo: 3, Hi: 7, Len: 6}},
		"rows before 0":         {x.Rows(-1, 2), &heap.SliceError{Of: "rows", Lo: -1, Hi: 2, Len: 6}},
		"rows backwards":        {x.Rows(4, 3), &heap.SliceError{Of: "rows", Lo: 4, Hi: 3, Len: 6}},
		"rows of a slice":       {x.Rows(2, 4).Rows(0, 3), &heap.SliceError{Of: "rows", Lo: 0, Hi: 3, Len: 2}},
		"columns past the end":  {x.Cols(0, 5), &heap.SliceError{Of: "columns", Lo: 0, Hi: 5, Len: 4}},
		"columns before 0":      {x.Cols(-2, 0), &heap.SliceError{Of: "columns", Lo: -2, Hi: 0, Len: 4}},
		"columns of a line":     {line.Cols(0, 1), &heap.SliceError{Of: "columns", Lo: 0, Hi: 1}},
		"no such rank":          {x.At(2), &heap.RankError{Rank: 2, Ranks: 2}},
		"no such rank, sliced":  {x.At(-1).Rows(0, 1).Cols(0, 1).At(1), &heap.RankError{Rank: -1, Ranks: 2}},
		"right slice after all": {x.Rows(9, 9).Rows(0, 0), &heap.SliceError{Of: "rows", Lo: 9, Hi: 9, Len: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			for use, err := range uses(c.part) {
				if !reflect.DeepEqual(err, c.want) {
					t.Errorf("%s: got %v, want %v", use, err, c.want)
				}
			}
			if c.part.Addr() != 0 || c.part.Len() != 0 || c.part.Size() != 0 || c.part.Window() != (schedule.Window{}) {
				t.Errorf("it has %d elements at %#x", c.part.Len(), c.part.Addr())
			}
			if len(c.part.Strides()) != len(c.part.Shape()) {
				t.Errorf("strides %v of shape %v", c.part.Strides(), c.part.Shape())
			}
		})
	}
	if err := x.Err(); err != nil {
		t.Errorf("a wrong slice made its tensor wrong: %v", err)
	}
}

func TestAFreedTensorFailsWhereverItIsUsed(t *testing.T) {
	h := newHeap(t, 2, 1<<13)
	defer h.Close()
	newTensor(t, h, 0, heap.Uint8, 3)
	x := newTensor(t, h, 0, heap.Uint16, 1, 0x10)
	part := x.Rows(0, 0)
	if err := x.Block().Free(); err != nil {
		t.Fatal(err)
	}
	want := &heap.FreedError{Offset: 256, Bytes: 32}
	all := uses(part)
	delete(all, "Row") // of a tensor without rows
	all["Hold"], all["Free"], all["Zero"] = x.Block().Hold(), x.Block().Free(), x.Block().Zero(1)
	_, all["NewTensor"] = heap.NewTensor(h, x.Block(), 0, heap.Uint8, 1)
	for use, err := range all {
		if !reflect.DeepEqual(err, want) {
			t.Errorf("%s: got %v, want %v", use, err, want)
		}
	}
}

func TestFreeTakesEffectWhenTheLastHolderIsDone(t *testing.T) {
	h := newHeap(t, 1, 1<<12)
	defer h.Close()
	x := newTensor(t, h, 0, heap.Uint8, 1<<12)
	for range 2 {
		if err := x.Block().Hold(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Block().Free(); err != nil {
		t.Fatal(err)
	}
	for holders := 2; holders > 0; holders-- {
		var e *heap.ExhaustedError
		if _, err := h.Alloc(1); !errors.As(err, &e) {
			t.Fatalf("with %d holders the space was used again: %v", holders, err)
		}
		if err := x.Write(make([]byte, 1<<12)); err != nil {
			t.Fatalf("a holder writes: %v", err)
		}
		if err := x.Err(); err == nil {
			t.Fatal("a freed tensor can be launched on")
		}
		x.Block().Release()
	}
	if b, err := h.Alloc(1 << 12); err != nil || b.Offset() != 0 {
		t.Fatalf("the space did not come back: %v", err)
	}
}

func TestTensorsThatCannotBeAreRefused(t *testing.T) {
	h, other := newHeap(t, 1, 1<<13), newHeap(t, 1, 1<<13)
	defer h.Close()
	defer other.Close()
	b, err := h.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dt    heap.DType
		shape []int
	}{
		"no type":            {0, []int{1}},
		"an unknown type":    {200, []int{1}},
		"no dimensions":      {heap.Uint8, nil},
		"no rows":            {heap.Uint8, []int{0, 3}},
		"negative columns":   {heap.Uint8, []int{3, -3}},
		"past 2^63":          {heap.Float64, []int{math.MaxInt / 2, 2, 2}},
		"a byte too many":    {heap.Uint8, []int{101}},
		"an element too few": {heap.Float64, []int{13}},
	} {
		t.Run(name, func(t *testing.T) {
			var e *heap.ShapeError
			if _, err := heap.NewTensor(h, b, 0, c.dt, c.shape...); !errors.As(err, &e) || e.DType != c.dt || !slices.Equal(e.Shape, c.shape) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if _, err := heap.NewTensor(other, b, 0, heap.Uint8, 1); !errors.Is(err, heap.ErrForeign) {
		t.Errorf("another heap's block: %v", err)
	}
	if _, err := heap.NewTensor(h, nil, 0, heap.Uint8, 1); !errors.Is(err, heap.ErrForeign) {
		t.Errorf("no block: %v", err)
	}
}

func TestElementsAreOfTheirGoTypeOrBits(t *testing.T) {
	h := newHeap(t, 1, 1<<13)
	defer h.Close()
	x := newTensor(t, h, 0, heap.Float32, 3)
	values, err := heap.Slice[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	copy(values, []float32{1, -2.5, 1e9})
	raw, err := heap.Slice[uint32](x)
	if err != nil || !slices.Equal(raw, []uint32{math.Float32bits(1), math.Float32bits(-2.5), math.Float32bits(1e9)}) {
		t.Errorf("bits %#x, %v", raw, err)
	}
	type half uint16
	if _, err := heap.Slice[half](newTensor(t, h, 0, heap.BFloat16, 3)); err != nil {
		t.Error(err)
	}
	var e *heap.TypeError
	if _, err := heap.Slice[int32](x); !errors.As(err, &e) || e.DType != heap.Float32 || e.Type != "int32" {
		t.Errorf("got %v", err)
	}
	if _, err := heap.Slice[float64](x); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	for dt := heap.BFloat16; dt.Valid(); dt++ {
		if dt.Size() < 1 || dt.String() == "" {
			t.Errorf("type %d: %q of %d bytes", dt, dt, dt.Size())
		}
	}
	if heap.DType(0).Valid() || heap.DType(0).Size() != 0 || heap.BFloat16.String() != "bfloat16" || heap.BFloat16.Size() != 2 {
		t.Error("types are not what they were")
	}
}

func TestABufferHasTheTensorsSize(t *testing.T) {
	h := newHeap(t, 1, 1<<13)
	defer h.Close()
	x := newTensor(t, h, 0, heap.Int16, 3, 4).Cols(1, 3)
	for _, n := range []int{0, 11, 13} {
		var e *heap.LengthError
		for _, err := range []error{x.Read(make([]byte, n)), x.Write(make([]byte, n))} {
			if !errors.As(err, &e) || *e != (heap.LengthError{Found: int64(n), Want: 12}) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}
