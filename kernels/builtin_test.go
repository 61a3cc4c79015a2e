package kernels_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

func TestEveryBuiltinKernelDocumentsItsArguments(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
				docs[strings.ToLower(d.Specs[0].(*ast.ValueSpec).Names[0].Name)] = d.Doc.Text()
			}
		}
	}
	for _, k := range kernels.Builtin() {
		call := fmt.Sprintf("\t%s(%s)\n", k.Name, strings.Join(k.Args, ", "))
		if !strings.Contains(docs[k.Name], call) {
			t.Errorf("the documentation of %s does not show %q", k.Name, call)
		}
	}
}

func TestABuiltinKernelFailsUnlessItGetsItsArguments(t *testing.T) {
	for _, k := range kernels.Builtin() {
		for n := range len(k.Args) + 2 {
			if n == len(k.Args) {
				continue
			}
			r := newRig(t, alone(0, 1))
			err := r.run(k, kernels.Grid(1), make([]uint64, n)...)
			var bad *kernels.ArgumentError
			if !errors.As(err, &bad) || bad.Kernel != k.Name {
				t.Errorf("%s with %d arguments ends with %v, want an ArgumentError", k.Name, n, err)
				continue
			}
			if n < len(k.Args) && bad.Argument != k.Args[n] {
				t.Errorf("%s with %d arguments lacks %s, it says", k.Name, n, bad.Argument)
			}
			if text := err.Error(); !strings.Contains(text, strings.Join(k.Args, ", ")) || !strings.Contains(text, fmt.Sprintf("launched with %d", n)) {
				t.Errorf("%q does not say what was given and what is wanted", text)
			}
		}
	}
}

func TestBuiltinKernelsHaveDistinctNamesInOrder(t *testing.T) {
	last := ""
	for _, k := range kernels.Builtin() {
		if k.Name <= last {
			t.Errorf("%s comes after %s", k.Name, last)
		}
		last = k.Name
	}
}

func TestAGridHasOneThreadPerCTAAndWaitsWhenAsked(t *testing.T) {
	if g := kernels.Grid(7); g != (hip.Grid{Blocks: 7}) {
		t.Errorf("Grid(7) = %+v", g)
	}
	if g := kernels.Waits(hip.Grid{Blocks: 7, Threads: 3}); g != (hip.Grid{Blocks: 7, Threads: 3, Waits: true}) {
		t.Errorf("it becomes %+v", g)
	}
}

func TestARegionWithoutSenseFailsTheKernel(t *testing.T) {
	for _, region := range []kernels.Region{
		{Offset: -1, Width: 8, Height: 1, Pitch: 8},
		{Width: -8, Height: 1, Pitch: 8},
		{Width: 8, Height: 2, Pitch: 7},
		{Width: 1 << 40, Height: 1 << 40, Pitch: 1 << 40},
		{Width: 1, Height: 1 << 40, Pitch: 1 << 40},
		{Offset: 60, Width: 8, Height: 1, Pitch: 8},
		{Width: 8, Height: 9, Pitch: 8},
		{Offset: 1 << 40, Width: 8, Height: 1, Pitch: 8},
	} {
		r := newRig(t, alone(64, 1))
		err := r.run(kernels.Fill, kernels.Grid(2), r.handle.Addr(), r.buffer.Addr(),
			uint64(region.Offset), uint64(region.Width), uint64(region.Height), uint64(region.Pitch), 0, 0)
		var bad *kernels.RegionError
		if !errors.As(err, &bad) || bad.Region != region {
			t.Errorf("%+v: the kernel ends with %v, want a RegionError", region, err)
		}
	}
}

func TestFillWritesItsRegionAndNothingElse(t *testing.T) {
	r := newRig(t, shape{rank: 3, world: 4, first: 2, own: 1, writers: []int{1, 1, 5}, buffer: 4096})
	for i, region := range []kernels.Region{
		{Offset: 3, Width: 1, Height: 1, Pitch: 0},
		{Offset: 17, Width: 13, Height: 11, Pitch: 29},
		{Offset: 64, Width: 64, Height: 8, Pitch: 64},
		{Offset: 9, Width: 0, Height: 5, Pitch: 7},
		{Offset: 0, Width: 4096, Height: 1, Pitch: 4096},
	} {
		r.start(uint64(i + 1))
		before := append([]byte(nil), r.buffer.Bytes(0, 4096)...)
		r.mustRun(kernels.Fill, hip.Grid{Blocks: 5, Threads: 3}, r.handle.Addr(), r.buffer.Addr(),
			uint64(region.Offset), uint64(region.Width), uint64(region.Height), uint64(region.Pitch), 11, 2)
		for row := range region.Height {
			at := region.Offset + row*region.Pitch
			kernels.FillPattern(before[at:at+region.Width], kernels.SeedOf(11, 3, r.round), uint64(at))
		}
		if string(before) != string(r.buffer.Bytes(0, 4096)) {
			t.Errorf("%+v: other bytes are in the buffer", region)
		}
		if v := r.gate(2, kernels.GateReady).Load(); v != r.round {
			t.Errorf("%+v: the gate is at %d in round %d", region, v, r.round)
		}
	}
}

func TestTiledRefusesEmptyTilesAndChunks(t *testing.T) {
	for i, name := range map[int]string{6: "tile_rows", 7: "tile_bytes", 8: "steps_per_chunk", 9: "group"} {
		for _, v := range []uint64{0, 1<<64 - 1} {
			r := newRig(t, alone(64, 1))
			args := []uint64{r.handle.Addr(), r.buffer.Addr(), 0, 4, 16, 16, 2, 8, 1, 1, 0}
			args[i] = v
			var bad *kernels.ArgumentError
			if err := r.run(kernels.Tiled, kernels.Grid(2), args...); !errors.As(err, &bad) || bad.Argument != name {
				t.Errorf("%s = %d: the kernel ends with %v", name, v, err)
			}
		}
	}
}

// consume runs the consumer of a plan of two ranks, whose chunks have all
// arrived, and returns the error row's words.
func consume(r *rig, table []uint64) (wrong, chunk, checked uint64) {
	r.t.Helper()
	r.errors.StoreWords(0, 8, make([]uint64, 8))
	r.mustRun(kernels.Consumer, hip.Grid{Blocks: 2, Threads: 3, Waits: true}, r.handle.Addr(), r.buffer.Addr(), r.words(table), 5, r.errors.Addr())
	return r.errors.Word(kernels.ErrorBytes).Load(), r.errors.Word(kernels.ErrorChunk).Load(), r.errors.Word(kernels.ErrorChecked).Load()
}

func TestTheConsumerFindsEveryWrongByteOfEveryRanksChunks(t *testing.T) {
	regions := [][]kernels.Region{
		{{Offset: 0, Width: 100, Height: 1, Pitch: 100}, {Offset: 128, Width: 7, Height: 9, Pitch: 16}},
		{},
		{{Offset: 1024, Width: 33, Height: 5, Pitch: 64}},
	}
	table := kernels.ConsumerTable(regions)
	r := newRig(t, shape{rank: 0, world: 2, first: 0, own: 2, owner: 1, writers: []int{1, 1, 1}, buffer: 4096})
	for round := uint64(1); round <= 5; round++ {
		r.start(round)
		for c, owner := range []int{0, 0, 1} {
			for _, g := range regions[c] {
				for row := range g.Height {
					at := g.Offset + row*g.Pitch
					kernels.FillPattern(r.buffer.Bytes(at, g.Width), kernels.SeedOf(5, owner, round), uint64(at))
				}
			}
			r.gate(c, kernels.GateReady).Store(round)
			r.gate(c, kernels.GateArrival).Store(round)
		}
		if wrong, chunk, checked := consume(r, table); wrong != 0 || chunk != 0 || checked != 3 {
			t.Fatalf("round %d: %d wrong bytes, chunk word %d, %d chunks checked; want 0, 0, 3", round, wrong, chunk, checked)
		}
		for i := range int64(round) {
			r.buffer.Bytes(1024+4*64+i, 1)[0] ^= byte(round)
		}
		if wrong, chunk, checked := consume(r, table); wrong != round || chunk != 3 || checked != 3 {
			t.Fatalf("round %d: %d wrong bytes, chunk word %d, %d chunks checked; want %d, 3, 3", round, wrong, chunk, checked, round)
		}
	}
}

func TestTheConsumerWaitsForEachChunk(t *testing.T) {
	r := newRig(t, shape{world: 2, owner: 1, writers: []int{1, 1, 1}, buffer: 64})
	r.gate(0, kernels.GateArrival).Store(1)
	table := kernels.ConsumerTable(make([][]kernels.Region, 3))
	r.launch(kernels.Consumer, kernels.Waits(kernels.Grid(1)), r.handle.Addr(), r.buffer.Addr(), r.words(table), 5, r.errors.Addr())
	checked := r.errors.Word(kernels.ErrorChecked)
	if err := hip.NewWaiter().Await(soon(t), checked, func(v uint64) bool { return v == 1 }, nil); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.stream.Close(over); err != nil {
		t.Fatal(err)
	}
	var bad *kernels.WaitError
	if err := r.stream.Err(); !errors.As(err, &bad) || bad.Chunk != 1 || checked.Load() != 1 {
		t.Errorf("after %d chunks the kernel ends with %v, want 1 and a WaitError about chunk 1", checked.Load(), err)
	}
}

func TestTheConsumerRefusesATableWithoutSense(t *testing.T) {
	for name, table := range map[string][]uint64{
		"falling":   {1, 0},
		"endless":   {0, 1 << 40},
		"truncated": {0, 1},
		"outside":   {0, 1, 60, 8, 1, 8},
	} {
		r := newRig(t, alone(64, 1))
		r.gate(0, kernels.GateReady).Store(1)
		m := r.alloc(4096)
		addr := m.Addr() + 4096 - uint64(len(table))*8
		m.StoreWords(4096-int64(len(table))*8, 8, table)
		err := r.run(kernels.Consumer, kernels.Grid(1), r.handle.Addr(), r.buffer.Addr(), addr, 0, r.errors.Addr())
		var bad *kernels.ArgumentError
		if !errors.As(err, &bad) || bad.Argument != "table" {
			t.Errorf("a table that is %s: the kernel ends with %v", name, err)
		}
	}
}
