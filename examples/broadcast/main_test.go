package main

import (
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
	"github.com/triggeredplans/sluice/rank"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func program(b *broadcast) exampletest.Program {
	return exampletest.Program{Name: name, What: what, Flags: b.flags, Run: b.run}
}

func TestEveryShapeIsSentFromEveryRootAndVerified(t *testing.T) {
	for _, args := range []string{
		"-ranks 4 -rows 40 -cols 72 -tile 16x32 -programs 4 -rounds 5", // edge tiles are clipped, the last chunk is short
		"-ranks 4 -root 3 -rows 40 -cols 72 -tile 16x32 -programs 4 -rounds 5",
		"-ranks 3 -root 1 -rows 50 -cols 50 -tile 7x11 -programs 3 -rounds 3",
		"-ranks 1 -rows 64 -cols 64 -tile 16x16 -rounds 3", // there is nobody to send to
		"-ranks 2 -root 1 -rows 1 -cols 1 -rounds 3",
		"-ranks 16 -root 7 -rows 8 -cols 16 -tile 4x8 -programs 2 -rounds 2",
		"-ranks 2 -rows 16 -cols 16 -tile 8x8 -programs 64", // more programs than tiles
		"-ranks 3 -rows 16 -cols 32 -tile 8x8 -rounds 100",  // many rounds
		"-ranks 2 -rows 64 -cols 64 -tile 16x16 -heap 67108864 -v",
	} {
		t.Run(strings.ReplaceAll(args, " ", "_"), func(t *testing.T) {
			var r result
			program(&broadcast{node: exampletest.Node(t)}).JSON(t, args, &r)
			if !r.AllRight || r.SecondsPer <= 0 {
				t.Errorf("the result is wrong: %+v", r)
			}
		})
	}
}

func TestTheResultCountsWhatTheRootSent(t *testing.T) {
	// The shape of a gather whose chunks have four regions in all; see
	// examples/all_gather.
	var got result
	program(&broadcast{node: exampletest.Node(t)}).JSON(t, "-ranks 5 -root 2 -rows 40 -cols 72 -tile 16x32 -programs 4 -rounds 5", &got)
	want := result{
		Example: "broadcast", Platform: exampletest.Platform(), Ranks: 5, Root: 2, Rounds: 5, Rows: 40, Cols: 72,
		Chunks: 3, CopiesPerRound: 4 * 4, Figures: example.Figures{Bytes: 4 * 40 * 72 * example.Elem, SecondsPer: got.SecondsPer, GBytesPer: got.GBytesPer, AllRight: true},
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestJSONHasJustItsFields(t *testing.T) {
	o := program(&broadcast{node: exampletest.Node(t)}).With("-ranks 2 -rows 8 -cols 8 -tile 4x4 -rounds 2 -json")
	o.Fields(t, "example", "platform", "ranks", "root", "rounds", "rows", "cols", "chunks", "copies_per_round",
		"bytes_per_round", "seconds_per_round", "gbytes_per_second", "verified")
	if o.Err != "" {
		t.Errorf("standard error: %s", o.Err)
	}
}

func TestABadFlagEndsWithOneClearLineAndStatus2(t *testing.T) {
	for args, says := range map[string]string{
		"-root -1":         "-root: it is a whole number from 0 to 63",
		"-root 64":         "-root: it is a whole number from 0 to 63",
		"-rows 0":          "-rows: it is a whole number from 1",
		"-cols 0":          "-cols: it is a whole number from 1",
		"-programs 0":      "-programs: it is a whole number from 1",
		"-tile 4":          "ROWSxCOLS",
		"-platform nosuch": `no platform is named "nosuch"`,
		"extra":            `"extra"`,
	} {
		t.Run(args, func(t *testing.T) { program(&broadcast{node: exampletest.Node(t)}).With(args).Failed(t, 2, name, says) })
	}
}

func TestWhatCannotBeDoneEndsWithOneClearLineAndStatus1(t *testing.T) {
	for args, says := range map[string]string{
		"-ranks 3 -root 3": "-root is 3, and -ranks 3 makes ranks 0 to 2",
		"-heap 4096":       "no room for 2097152 bytes",
		"-ranks 2 -rows 40 -cols 40 -tile 1x1 -programs 1": "has no room",
	} {
		t.Run(args, func(t *testing.T) {
			o := program(&broadcast{node: exampletest.Node(t)}).With(args + " -json")
			o.Failed(t, 1, name, says)
			if o.Stdout != "" {
				t.Errorf("standard output: %s", o.Stdout)
			}
		})
	}
}

// A copy that does not move its bytes leaves those of the round before.
func TestStaleBytesAreFound(t *testing.T) {
	node := exampletest.Spoiled(t, 6, func(_, to int, _ *sdma.Packet) bool { return to == 2 }, exampletest.Stale)
	o := program(&broadcast{node: node}).With("-platform host -ranks 3 -rows 32 -cols 32 -tile 16x16 -programs 2 -rounds 5 -json")
	o.Failed(t, 1, name, "rank 2 has")
	var r result
	if o.Decode(t, &r); r.AllRight {
		t.Error("verified is true")
	}
}

func TestOnlyTheRootSends(t *testing.T) {
	var from [3]bool // by device; each is written by its own queues' engines
	node, err := rank.NewNode(rank.NodeConfig{
		RingBytes: 64 << 10,
		Intercept: func(f, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
			if p.Op == sdma.OpCopyLinear || p.Op == sdma.OpCopyWindow || p.Op == sdma.OpPoll {
				if f.Device != 1 {
					from[f.Device] = true
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if o := program(&broadcast{node: node}).With("-platform host -ranks 3 -root 1 -rows 32 -cols 32 -tile 16x16 -rounds 3"); o.Code != 0 {
		t.Fatal(o.Err)
	}
	if from[0] || from[2] {
		t.Error("a rank with an empty schedule has sent something")
	}
}

func TestWithoutJSONAPersonReadsWhatHappens(t *testing.T) {
	o := program(&broadcast{node: exampletest.Node(t)}).With("-ranks 3 -root 1 -rows 64 -cols 64 -tile 16x16 -rounds 2")
	for _, part := range []string{"rank 1 of 3 sends 64x64", "2 rounds", exampletest.Platform() + " platform", "bytes sent per round", "time per round", "every byte verified    true"} {
		if !strings.Contains(o.Stdout, part) {
			t.Errorf("it does not say %q:\n%s%s", part, o.Stdout, o.Err)
		}
	}
}

func TestTheProcessEndsWithTheStatusOfTheRun(t *testing.T) {
	exampletest.Status(t, "-ranks 2 -rows 8 -cols 8 -tile 4x4 -rounds 2", 0)
	exampletest.Status(t, "-ranks 2 -heap 1", 1)
	exampletest.Status(t, "-rows 0", 2)
}
