package main

import (
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func program(g *gather) exampletest.Program {
	return exampletest.Program{Name: name, What: what, Flags: g.flags, Run: g.run}
}

func TestEveryShapeIsMultipliedGatheredAndUsed(t *testing.T) {
	for _, args := range []string{
		"-ranks 2 -rounds 3",
		"-ranks 3 -rows 200 -cols 300 -depth 20 -programs 2 -rounds 4", // edge tiles are clipped, the last chunk is short
		"-ranks 1 -rows 130 -cols 10 -depth 3 -rounds 2",
		"-ranks 2 -rows 1 -cols 1 -depth 1 -rounds 3",
		"-ranks 4 -rows 256 -cols 256 -depth 8 -programs 3 -tiles 2 -rounds 3", // chunks are complete out of step with programs
		"-ranks 2 -rows 64 -cols 64 -depth 8 -rounds 200",
	} {
		t.Run(strings.ReplaceAll(args, " ", "_"), func(t *testing.T) {
			var r result
			program(new(gather)).JSON(t, args+" -platform host", &r)
			if !r.AllRight || r.SecondsPer <= 0 || r.Sampled != samples*r.Ranks*r.Rounds || r.WorstError > 1 {
				t.Errorf("the result is wrong: %+v", r)
			}
		})
	}
}

func TestTheResultCountsWhatWasSent(t *testing.T) {
	var r result
	program(new(gather)).JSON(t, "-ranks 3 -rows 300 -cols 200 -depth 4 -programs 4 -rounds 2 -platform host", &r)
	if r.Platform != "host" || r.Producer != "builtin" || r.TileRows != 128 || r.TileCols != 128 || r.ChunksPerRank != 2 || r.Bytes != 3*2*300*200*elem {
		t.Errorf("the result is %+v", r)
	}
}

func TestJSONHasJustItsFields(t *testing.T) {
	o := program(new(gather)).With("-ranks 2 -rows 8 -cols 8 -depth 8 -rounds 2 -json -platform host")
	o.Fields(t, "example", "platform", "producer", "ranks", "rounds", "rows", "cols", "depth", "tile_rows", "tile_cols",
		"chunks_per_rank", "elements_compared_with_float64", "worst_error", "bytes_per_round", "seconds_per_round", "gbytes_per_second", "verified")
}

func TestABadFlagEndsWithOneClearLine(t *testing.T) {
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"-depth 0":             {2, "-depth"},
		"-tiles -1":            {2, "-tiles"},
		"-producer triton":     {1, "needs a GPU"},
		"-producer gluon":      {1, "needs a GPU"},
		"-producer cutlass":    {2, "it is builtin, triton or gluon"},
		"-heap 256":            {1, "no room"},
		"-rows 99999999999999": {2, "-rows"},
	} {
		t.Run(args, func(t *testing.T) {
			program(new(gather)).With(args+" -platform host").Failed(t, want.code, name, want.says)
		})
	}
}

func TestStaleBytesAreFound(t *testing.T) {
	node := exampletest.Spoiled(t, 3, func(from, to int, _ *sdma.Packet) bool { return from == 1 && to == 0 }, exampletest.Stale)
	o := program(&gather{node: node}).With("-ranks 2 -rows 128 -cols 256 -depth 16 -programs 1 -rounds 5 -json -platform host")
	o.Failed(t, 1, name, "wrong bytes in rank 1's rows")
	var r result
	if o.Decode(t, &r); r.AllRight {
		t.Error("verified is true")
	}
}

func TestAWrongProductIsFound(t *testing.T) {
	g := &gather{rows: 64, cols: 64, depth: 16}
	in := &inputs{cols: 64, deep: 16, aHere: make([]byte, 64*16*elem), bHere: make([]byte, 64*16*elem)}
	fill(in.aHere, 1)
	fill(in.bHere, 2)
	own := make([]byte, 64*64*elem)
	for i := range 64 {
		for j := range 64 {
			want, _ := in.product(i, j)
			bits := narrow(float32(want))
			own[elem*(64*i+j)], own[elem*(64*i+j)+1] = byte(bits), byte(bits>>8)
		}
	}
	if row, col, worst := g.sample(in, own, 1); worst > 1 {
		t.Errorf("element %d, %d of a right product is off by %v", row, col, worst)
	}
	for _, high := range []byte{0x7f, 0x3f} { // a NaN, and about 1
		wrong := make([]byte, len(own))
		for i := range wrong {
			wrong[i] = high | 0x80*byte(1-i%2)
		}
		if _, _, worst := g.sample(in, wrong, 1); !(worst > 1) {
			t.Errorf("a wrong product is off by %v", worst)
		}
	}
}

func TestTheProcessEndsWithTheStatusOfTheRun(t *testing.T) {
	exampletest.Status(t, "-ranks 2 -rows 8 -cols 8 -depth 8 -rounds 2 -platform host", 0)
	exampletest.Status(t, "-ranks 0", 2)
}
