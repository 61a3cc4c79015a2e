package heap_test

import (
	"errors"
	"math"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// held is a block of the model: what is known of it from outside.
type held struct {
	block *heap.Block
	owned bool
	holds int
}

func (h *held) end() int64 { return h.block.Offset() + rounded(h.block.Bytes()) }

func rounded(n int64) int64 { return (n + heap.Alignment - 1) / heap.Alignment * heap.Alignment }

func TestBlocksNeverOverlapAndTheirSpaceComesBackWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 40).Draw(t, "pieces")*heap.Alignment + rapid.Int64Range(0, heap.Alignment-1).Draw(t, "rest")
		h := newHeap(t, 2, size)
		defer h.Close()
		var blocks []*held
		pick := func(t *rapid.T) *held {
			if len(blocks) == 0 {
				t.Skip("no blocks")
			}
			return rapid.SampledFrom(blocks).Draw(t, "block")
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.Int64Range(1, size+1).Draw(t, "bytes")
				fits, free, largest := lowestFit(blocks, size, rounded(n))
				b, err := h.Alloc(n)
				if fits < 0 {
					var e *heap.ExhaustedError
					if want := (heap.ExhaustedError{Want: n, Free: free, Largest: largest, Size: size}); !errors.As(err, &e) || *e != want {
						t.Fatalf("got %v, want %v", err, &want)
					}
					return
				}
				if err != nil || b.Offset() != fits || b.Bytes() != n {
					t.Fatalf("%d bytes: got %+v, %v; want offset %d", n, b, err, fits)
				}
				blocks = append(blocks, &held{b, true, 0})
			},
			"hold": func(t *rapid.T) {
				b := pick(t)
				err := b.block.Hold()
				var freed *heap.FreedError
				switch {
				case b.owned && err == nil:
					b.holds++
				case !b.owned && errors.As(err, &freed) && freed.Offset == b.block.Offset():
				default:
					t.Fatalf("owned %v: %v", b.owned, err)
				}
			},
			"release": func(t *rapid.T) {
				if b := pick(t); b.holds > 0 {
					b.block.Release()
					b.holds--
				}
			},
			"free": func(t *rapid.T) {
				b := pick(t)
				if err := b.block.Free(); (err == nil) != b.owned {
					t.Fatalf("owned %v: %v", b.owned, err)
				}
				b.owned = false
			},
			"": func(t *rapid.T) {
				blocks = slices.DeleteFunc(blocks, func(b *held) bool { return !b.owned && b.holds == 0 })
				var used int64
				for i, b := range blocks {
					used += b.end() - b.block.Offset()
					if b.block.Offset()%heap.Alignment != 0 || b.end() > size {
						t.Fatalf("[%d, %d) in a heap of %d", b.block.Offset(), b.end(), size)
					}
					for _, c := range blocks[:i] {
						if b.block.Offset() < c.end() && c.block.Offset() < b.end() {
							t.Fatalf("[%d, %d) and [%d, %d)", b.block.Offset(), b.end(), c.block.Offset(), c.end())
						}
					}
				}
				if h.Used() != used {
					t.Fatalf("%d bytes used, the blocks take %d", h.Used(), used)
				}
			},
		})
		for _, b := range blocks {
			if b.owned {
				b.block.Free()
			}
			for range b.holds {
				b.block.Release()
			}
		}
		if h.Used() != 0 {
			t.Fatalf("%d bytes used at the end", h.Used())
		}
		if b, err := h.Alloc(size / heap.Alignment * heap.Alignment); err != nil || b.Offset() != 0 {
			t.Fatalf("the whole heap: %v", err)
		}
	})
}

// lowestFit is the lowest offset with n free bytes, or −1, and the free bytes
// in all and in the largest piece, found by marking every piece.
func lowestFit(blocks []*held, size, n int64) (fits, free, largest int64) {
	taken := make([]bool, size/heap.Alignment)
	for _, b := range blocks {
		for p := b.block.Offset(); p < b.end(); p += heap.Alignment {
			taken[p/heap.Alignment] = true
		}
	}
	fits = -1
	var run int64
	for i, t := range taken {
		if t {
			run = 0
			continue
		}
		run += heap.Alignment
		free += heap.Alignment
		largest = max(largest, run)
		if run >= n && fits < 0 {
			fits = int64(i+1)*heap.Alignment - n
		}
	}
	return fits, free, largest
}

func TestAllocationsOfManyGoroutinesDoNotMeet(t *testing.T) {
	h := newHeap(t, 3, 1<<16)
	defer h.Close()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			rnd := rand.New(rand.NewSource(int64(g)))
			for round := range 300 {
				b, err := h.Alloc(1 + rnd.Int63n(8000))
				if err != nil {
					t.Errorf("four blocks of at most 8000 bytes fit in 65536: %v", err)
					return
				}
				x, err := heap.NewTensor(h, b, round%3, heap.Uint8, int(b.Bytes()))
				if err != nil {
					t.Error(err)
					return
				}
				p := make([]byte, b.Bytes())
				rnd.Read(p)
				got := make([]byte, len(p))
				if err := errors.Join(x.Write(p), x.Read(got), b.Free()); err != nil || !slices.Equal(p, got) {
					t.Errorf("goroutine %d, round %d: what was written did not stay: %v", g, round, err)
				}
			}
		})
	}
	all.Wait()
	if h.Used() != 0 {
		t.Fatalf("%d bytes used at the end", h.Used())
	}
}

func TestMemoriesOfAHeapAreOfOneSize(t *testing.T) {
	mems := append(memories(t, 2, 8192), memories(t, 1, 4096)...)
	defer func() {
		for _, m := range mems {
			m.Free()
		}
	}()
	var e *heap.MemoryError
	if _, err := heap.New(mems); !errors.As(err, &e) || e.Rank != 2 || e.Bytes != 4096 || e.Want != 8192 {
		t.Errorf("got %v", err)
	}
	if _, err := heap.New(nil); !errors.As(err, &e) {
		t.Errorf("no memories: got %v", err)
	}
	for _, m := range mems {
		if m.Freed() {
			t.Error("New failed and freed its caller's memory")
		}
	}
}

func TestABlockHasAtLeastOneByteAndAHeapItsSize(t *testing.T) {
	h := newHeap(t, 1, 1000)
	defer h.Close()
	for _, n := range []int64{0, -1, math.MinInt64} {
		var e *heap.SizeError
		if _, err := h.Alloc(n); !errors.As(err, &e) || e.Bytes != n {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, n := range []int64{769, 1000, 1001, math.MaxInt64} {
		var e *heap.ExhaustedError
		if _, err := h.Alloc(n); !errors.As(err, &e) || *e != (heap.ExhaustedError{Want: n, Free: 768, Largest: 768, Size: 1000}) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if e != nil && (!strings.Contains(e.Error(), "768 free in a heap of 1000")) {
			t.Errorf("%v", e)
		}
	}
}

func TestAHeapHasOnlyItsRanks(t *testing.T) {
	mems := memories(t, 2, 4096)
	h, err := heap.New(mems)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Ranks() != 2 || h.Size() != 4096 || h.Memory(1) != mems[1] || h.Memory(2) != nil || h.Memory(-1) != nil {
		t.Fatalf("%d ranks of %d bytes", h.Ranks(), h.Size())
	}
	b, err := h.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	var e *heap.RankError
	if err := b.Zero(2); !errors.As(err, &e) || e.Rank != 2 || e.Ranks != 2 {
		t.Errorf("Zero: %v", err)
	}
	if _, err := heap.NewTensor(h, b, -1, heap.Uint8, 4); !errors.As(err, &e) {
		t.Errorf("NewTensor: %v", err)
	}
}

func TestZeroClearsOneRanksBytesOfABlockAndNoOthers(t *testing.T) {
	const size = 3<<20 + 512 // more than a piece
	mems := memories(t, 2, size)
	h, err := heap.New(mems)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, m := range mems {
		for i, p := 0, m.Bytes(0, size); i < len(p); i++ {
			p[i] = byte(i%255) + 1
		}
	}
	if _, err := h.Alloc(256); err != nil {
		t.Fatal(err)
	}
	b, err := h.Alloc(3<<20 - 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Zero(1); err != nil {
		t.Fatal(err)
	}
	for rank, m := range mems {
		for i, v := range m.Bytes(0, size) {
			cleared := rank == 1 && i >= 256 && i < 256+3<<20-1
			if (v == 0) != cleared {
				t.Fatalf("byte %d of rank %d is %d", i, rank, v)
			}
		}
	}
}

func TestMemoryIsFreedByCloseOrWithTheLastRelease(t *testing.T) {
	freed := func(mems []*hip.Memory) int {
		n := 0
		for _, m := range mems {
			if m.Freed() {
				n++
			}
		}
		return n
	}
	mems := memories(t, 2, 4096)
	h, err := heap.New(mems)
	if err != nil {
		t.Fatal(err)
	}
	x := newTensor(t, h, 1, heap.Int32, 8)
	newTensor(t, h, 0, heap.Int32, 8) // never freed, never held
	if err := x.Block().Hold(); err != nil {
		t.Fatal(err)
	}
	h.Close()
	h.Close()
	if freed(mems) != 0 || h.Used() != heap.Alignment {
		t.Fatalf("a held block's memory was freed: %d bytes held", h.Used())
	}
	if err := x.Write(make([]byte, 32)); err != nil {
		t.Fatalf("a holder writes: %v", err)
	}
	if _, err := h.Alloc(1); !errors.Is(err, heap.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	x.Block().Release()
	if freed(mems) != 2 || h.Used() != 0 {
		t.Fatalf("%d of 2 memories freed, %d bytes held", freed(mems), h.Used())
	}
	var e *heap.FreedError
	if err := x.Read(make([]byte, 32)); !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}

	mems = memories(t, 2, 4096)
	if h, err = heap.New(mems); err != nil {
		t.Fatal(err)
	}
	h.Close()
	if freed(mems) != 2 {
		t.Fatal("an empty heap's memory stays")
	}
}
