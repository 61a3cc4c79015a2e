package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
	"github.com/triggeredplans/sluice/rank"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func program(g *gather) exampletest.Program {
	return exampletest.Program{Name: name, What: what, Flags: g.flags, Run: g.run}
}

func TestEveryShapeIsGatheredAndVerified(t *testing.T) {
	for _, args := range []string{
		"-ranks 8 -rows 40 -cols 72 -tile 16x32 -programs 4 -rounds 5", // edge tiles are clipped, the last chunk is short
		"-ranks 1 -rows 64 -cols 64 -tile 16x16 -rounds 3",
		"-ranks 2 -rows 96 -cols 33 -tile 32x32 -rounds 3",
		"-ranks 3 -rows 50 -cols 50 -tile 7x11 -programs 3 -rounds 3",
		"-ranks 5 -rows 17 -cols 129 -tile 4x64 -programs 5 -rounds 3",
		"-ranks 16 -rows 8 -cols 16 -tile 4x8 -programs 2 -rounds 2",
		"-ranks 4 -rows 1 -cols 100 -tile 1x10 -rounds 3",          // one row per rank
		"-ranks 4 -rows 100 -cols 1 -tile 10x1 -rounds 3",          // one column
		"-ranks 3 -rows 1 -cols 1 -tile 128x128 -rounds 3",         // one element
		"-ranks 2 -rows 16 -cols 16 -tile 8x8 -programs 64",        // more programs than tiles
		"-ranks 3 -rows 16 -cols 32 -tile 8x8 -rounds 200",         // many rounds
		"-ranks 2 -rows 64 -cols 64 -tile 16x16 -platform host",    // a platform by name
		"-ranks 2 -rows 64 -cols 64 -tile 16x16 -heap 67108864 -v", // a heap by size
	} {
		t.Run(strings.ReplaceAll(args, " ", "_"), func(t *testing.T) {
			var r result
			program(new(gather)).JSON(t, args, &r)
			if !r.AllRight || r.SecondsPer <= 0 {
				t.Errorf("the result is wrong: %+v", r)
			}
		})
	}
}

func TestTheResultCountsWhatWasSent(t *testing.T) {
	// 40x72 elements in 16x32 tiles are 3x3 tiles, of which 4 programs complete
	// 4, 4 and 1. The order takes two rows of tiles together, column by column:
	// steps 0 to 3 are a square of four tiles, two bands of 64 elements each;
	// steps 4 to 7 are the column beside it and two tiles of the last row.
	var got result
	program(new(gather)).JSON(t, "-ranks 8 -rows 40 -cols 72 -tile 16x32 -programs 4 -rounds 5", &got)
	want := result{
		Example: "all_gather", Platform: exampletest.Platform(), Ranks: 8, Rounds: 5, Rows: 40, Cols: 72,
		ChunksPerRank: 3, CopiesPerRound: 8 * 7 * 4, Figures: example.Figures{Bytes: 8 * 7 * 40 * 72 * example.Elem, SecondsPer: got.SecondsPer, GBytesPer: got.GBytesPer, AllRight: true},
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if rate := float64(got.Bytes) / got.SecondsPer / 1e9; got.GBytesPer != rate {
		t.Errorf("%v GB/s, and the other figures make %v", got.GBytesPer, rate)
	}
}

func TestJSONHasJustItsFields(t *testing.T) {
	o := program(new(gather)).With("-ranks 2 -rows 8 -cols 8 -tile 4x4 -rounds 2 -json")
	o.Fields(t, "example", "platform", "ranks", "rounds", "rows", "cols", "chunks_per_rank", "copies_per_round",
		"bytes_per_round", "seconds_per_round", "gbytes_per_second", "verified")
	if o.Err != "" {
		t.Errorf("standard error: %s", o.Err)
	}
}

func TestFlagsHaveTheirDefaults(t *testing.T) {
	o := program(new(gather)).With("-h")
	if o.Code != 0 || o.Err != "" {
		t.Fatalf("-h ended with status %d: %s", o.Code, o.Err)
	}
	want := map[string]string{
		"ranks": "4", "rounds": "10", "rows": "1024", "cols": "1024", "tile": "128x128", "programs": "8",
		"platform": `"auto"`, "json": "", "v": "", "heap": "", "metrics": "", "linger": "", "trace": "", "plot": "",
	}
	got := map[string]string{}
	last := ""
	for _, line := range strings.Split(o.Stdout, "\n") {
		if f, ok := strings.CutPrefix(line, "  -"); ok {
			last = strings.Fields(f)[0]
			got[last] = ""
		}
		if _, d, ok := strings.Cut(line, "(default "); ok {
			got[last] = strings.TrimSuffix(d, ")")
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestABadFlagEndsWithOneClearLineAndStatus2(t *testing.T) {
	for args, says := range map[string]string{
		"-ranks 0":             "-ranks: it is a whole number from 1 to 64",
		"-ranks -1":            "-ranks: it is a whole number from 1 to 64",
		"-ranks 65":            "-ranks: it is a whole number from 1 to 64",
		"-ranks four":          "-ranks: it is a whole number from 1 to 64",
		"-rounds 0":            "-rounds: it is a whole number from 1",
		"-rounds 4294967296":   "to 4294967295",
		"-rows 0":              "-rows: it is a whole number from 1",
		"-rows 99999999999999": "-rows: it is a whole number from 1",
		"-cols -3":             "-cols: it is a whole number from 1",
		"-cols 1.5":            "-cols: it is a whole number from 1",
		"-programs 0":          "-programs: it is a whole number from 1",
		"-programs 1000000":    "-programs: it is a whole number from 1",
		"-tile 0x4":            "ROWSxCOLS",
		"-tile 4x0":            "ROWSxCOLS",
		"-tile 4":              "ROWSxCOLS",
		"-tile 4x4x4":          "ROWSxCOLS",
		"-tile -4x4":           "ROWSxCOLS",
		"-tile 4x99999999999":  "ROWSxCOLS",
		"-platform nosuch":     `no platform is named "nosuch"; choose auto or one of: `,
		"-heap -5":             "-heap is -5",
		"-heap much":           "-heap",
		"-json=perhaps":        "-json",
		"-plot picture.bmp":    ".svg or .png",
		"-linger soon":         "-linger",
		"-nosuch":              "-nosuch",
		"-ranks":               "-ranks",
		"extra":                `"extra"`,
	} {
		t.Run(args, func(t *testing.T) {
			o := program(new(gather)).With(args)
			o.Failed(t, 2, name, says)
			if o.Stdout != "" {
				t.Errorf("standard output: %s", o.Stdout)
			}
		})
	}
}

func TestWhatCannotBeDoneEndsWithOneClearLineAndStatus1(t *testing.T) {
	small, err := rank.NewNode(rank.NodeConfig{RingBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"-heap 4096":                                              "no room for 8388608 bytes",
		"-ranks 2 -rows 10 -cols 10 -heap 256":                    "no room for 400 bytes",
		"-ranks 2 -rows 16777216 -cols 16777216":                  "1 TiB",
		"-ranks 2 -rows 16 -cols 16 -tile 4x4 -programs 1":        "has no room",
		"-ranks 3 -rows 90 -cols 4 -tile 1x4 -programs 1 -v":      "has no room",
		"-ranks 2 -rows 4097 -cols 4097 -tile 1x1 -heap 70000000": "tiles",
	} {
		t.Run(args, func(t *testing.T) {
			o := program(&gather{node: small}).With(args + " -json")
			o.Failed(t, 1, name, says)
			if o.Stdout != "" {
				t.Errorf("standard output: %s", o.Stdout)
			}
		})
	}
}

func TestStaleBytesAreFound(t *testing.T) {
	node := exampletest.Spoiled(t, 6, func(from, to int, _ *sdma.Packet) bool { return from == 1 && to == 0 }, exampletest.Stale)
	o := program(&gather{node: node}).With("-platform host -ranks 2 -rows 32 -cols 32 -tile 16x16 -programs 2 -rounds 5 -json")
	o.Failed(t, 1, name, "wrong bytes")
	var r result
	if o.Decode(t, &r); r.AllRight {
		t.Error("verified is true")
	}
}

func TestWithoutJSONAPersonReadsWhatHappens(t *testing.T) {
	o := program(new(gather)).With("-ranks 3 -rows 64 -cols 64 -tile 16x16 -rounds 2")
	if o.Code != 0 {
		t.Fatalf("status %d: %s", o.Code, o.Err)
	}
	for _, part := range []string{"3 ranks", "2 rounds", exampletest.Platform() + " platform", "bytes sent per round", "time per round", "GB/s", "every byte verified    true"} {
		if !strings.Contains(o.Stdout, part) {
			t.Errorf("it does not say %q:\n%s", part, o.Stdout)
		}
	}
}

func TestVerboseTellsOfEveryRound(t *testing.T) {
	o := program(new(gather)).With("-ranks 2 -rows 8 -cols 8 -tile 4x4 -rounds 7 -json -v")
	if n := strings.Count(o.Err, "\nround ") + 1; n != 7 || o.Code != 0 {
		t.Errorf("status %d, %d lines about rounds:\n%s", o.Code, n, o.Err)
	}
}

func TestTheProcessEndsWithTheStatusOfTheRun(t *testing.T) {
	exampletest.Status(t, "-ranks 2 -rows 8 -cols 8 -tile 4x4 -rounds 2", 0)
	exampletest.Status(t, "-ranks 2 -heap 1", 1)
	exampletest.Status(t, "-ranks 0", 2)
}
