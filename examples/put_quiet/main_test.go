package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func program(p *putQuiet) exampletest.Program {
	return exampletest.Program{Name: name, What: what, Flags: p.flags, Run: p.run}
}

func TestEveryShapeIsPutAndVerified(t *testing.T) {
	for _, args := range []string{
		"-ranks 4 -rows 16 -cols 30 -rounds 5",
		"-ranks 2 -rows 1 -cols 1 -rounds 5",
		"-ranks 3 -rows 1 -cols 77 -rounds 3",
		"-ranks 3 -rows 77 -cols 1 -rounds 3",
		"-ranks 5 -rows 9 -cols 130 -rounds 3",
		"-ranks 1 -rows 8 -cols 8 -rounds 3", // there is nobody to put to
		"-ranks 12 -rows 4 -cols 4 -rounds 2",
		"-ranks 2 -rows 8 -cols 8 -rounds 100",
		"-ranks 2 -rows 8 -cols 8 -heap 67108864 -v",
	} {
		t.Run(strings.ReplaceAll(args, " ", "_"), func(t *testing.T) {
			var r result
			program(&putQuiet{node: exampletest.Node(t)}).JSON(t, args, &r)
			if !r.AllRight || r.SecondsPer <= 0 {
				t.Errorf("the result is wrong: %+v", r)
			}
		})
	}
}

// byKernels is how often three ranks' kernels put in a round: only the host
// platform's do.
func byKernels() int {
	if exampletest.Platform() == "host" {
		return 3 * 2 * 2
	}
	return 0
}

func TestTheResultCountsWhatWasPut(t *testing.T) {
	var got result
	program(&putQuiet{node: exampletest.Node(t)}).JSON(t, "-ranks 3 -rows 10 -cols 7 -rounds 4", &got)
	want := result{
		Example: "put_quiet", Platform: exampletest.Platform(), Ranks: 3, Rounds: 4, Rows: 10, Cols: 7,
		HostPuts: 3 * 2 * 2, KernelPuts: byKernels(), Figures: example.Figures{Bytes: int64(12+byKernels()) / 2 * 10 * (7 + 4) * elem, SecondsPer: got.SecondsPer, GBytesPer: got.GBytesPer, AllRight: true},
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestJSONHasJustItsFields(t *testing.T) {
	o := program(&putQuiet{node: exampletest.Node(t)}).With("-ranks 2 -rows 8 -cols 8 -rounds 2 -json")
	o.Fields(t, "example", "platform", "ranks", "rounds", "rows", "cols", "host_puts_per_round", "kernel_puts_per_round",
		"bytes_per_round", "seconds_per_round", "gbytes_per_second", "verified")
	if o.Err != "" {
		t.Errorf("standard error: %s", o.Err)
	}
}

func TestABadFlagEndsWithOneClearLineAndStatus2(t *testing.T) {
	for args, says := range map[string]string{
		"-rows 0":          "-rows: it is a whole number from 1",
		"-cols 1.5":        "-cols: it is a whole number from 1",
		"-ranks 65":        "-ranks: it is a whole number from 1 to 64",
		"-platform nosuch": `no platform is named "nosuch"`,
		"extra":            `"extra"`,
	} {
		t.Run(args, func(t *testing.T) { program(&putQuiet{node: exampletest.Node(t)}).With(args).Failed(t, 2, name, says) })
	}
}

func TestWhatCannotBeDoneEndsWithOneClearLineAndStatus1(t *testing.T) {
	o := program(&putQuiet{node: exampletest.Node(t)}).With("-heap 4096 -json")
	o.Failed(t, 1, name, "no room for 524288 bytes")
	if o.Stdout != "" {
		t.Errorf("standard output: %s", o.Stdout)
	}
}

func TestWrongBytesAreFound(t *testing.T) {
	if exampletest.RaceDetector {
		t.Skip("a wrong copy touches what a kernel may be writing, which the race detector tells")
	}
	linear := func(p *sdma.Packet) bool { return p.Op == sdma.OpCopyLinear }
	window := func(p *sdma.Packet) bool { return p.Op == sdma.OpCopyWindow }
	for name, c := range map[string]struct {
		fits  func(p *sdma.Packet) bool
		spoil func(p *sdma.Packet)
	}{
		"stale rows":        {linear, exampletest.Stale},
		"a stale window":    {window, exampletest.Stale},
		"a row too few":     {window, func(p *sdma.Packet) { p.Copy.Height-- }},
		"rows too wide":     {window, func(p *sdma.Packet) { p.Copy.Width += 2 }},
		"the wrong place":   {window, func(p *sdma.Packet) { p.Copy.Dst -= 2 }},
		"the wrong columns": {window, func(p *sdma.Packet) { p.Copy.Src -= 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			node := exampletest.Spoiled(t, 6, func(from, to int, p *sdma.Packet) bool { return from == 1 && to == 0 && c.fits(p) }, c.spoil)
			o := program(&putQuiet{node: node}).With("-ranks 2 -rows 16 -cols 16 -rounds 5 -json")
			o.Failed(t, 1, "put_quiet", "rank 0 has")
			var r result
			if o.Decode(t, &r); r.AllRight {
				t.Error("verified is true")
			}
		})
	}
}

func TestWithoutJSONAPersonReadsWhatHappens(t *testing.T) {
	o := program(&putQuiet{node: exampletest.Node(t)}).With("-ranks 3 -rows 8 -cols 8 -rounds 2")
	puts := fmt.Sprintf("12 puts by hosts and %d by kernels", byKernels())
	for _, part := range []string{"3 ranks", "2 rounds", puts, "bytes put per round", "time per round", "every byte verified    true"} {
		if !strings.Contains(o.Stdout, part) {
			t.Errorf("it does not say %q:\n%s%s", part, o.Stdout, o.Err)
		}
	}
}

func TestTheProcessEndsWithTheStatusOfTheRun(t *testing.T) {
	exampletest.Status(t, "-ranks 2 -rows 8 -cols 8 -rounds 2", 0)
	exampletest.Status(t, "-ranks 2 -heap 1", 1)
	exampletest.Status(t, "-rows 0", 2)
}
