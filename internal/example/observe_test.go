package example_test

import (
	"context"
	"encoding/json"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good is a result.
type good struct{ OK bool }

func (good) Verified() bool     { return true }
func (good) Table() [][2]string { return nil }

// gather is a small program that runs one round of a plan.
var gather = exampletest.Program{Name: "gather", What: "gather", Flags: func(*flag.FlagSet) {}, Run: func(ctx context.Context, f *example.Flags) (example.Result, error) {
	cfg := rank.Config{Ranks: f.Ranks, Platform: "host", HeapBytes: f.HeapBytes(1 << 20)}
	return good{true}, f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, r.Size(), 256)
		if err != nil {
			return err
		}
		p, err := plan.NewAllGather(ctx, r, out, nil)
		if err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		w := out.Rows(r.ID(), r.ID()+1).Window()
		if err := r.Launch(kernels.Fill, kernels.Grid(1), h, out, w.Offset, 256, 1, 256, 5, p.FirstChunk()); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}}

func TestTraceAndPlotAreWritten(t *testing.T) {
	dir := t.TempDir()
	o := gather.With("-ranks 3 -trace " + dir + "/t.json -plot " + dir + "/t.svg")
	if o.Code != 0 || !strings.Contains(o.Stdout, "t.json") || !strings.Contains(o.Stdout, "t.svg") {
		t.Fatalf("status %d: %s%s", o.Code, o.Stdout, o.Err)
	}
	text, err := os.ReadFile(dir + "/t.json")
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct{ Cat string }
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range trace.TraceEvents {
		n[e.Cat]++
	}
	if n["round"] != 3 || n["compute"] != 3 || n["copy"] != 6 || n["arrival"] != 6 || n["trigger"] != 12 {
		t.Errorf("the trace has %v; there were 3 ranks with a chunk each", n)
	}
	if svg, err := os.ReadFile(dir + "/t.svg"); err != nil || !strings.Contains(string(svg), "rank 2 computes") {
		t.Errorf("the picture: %v, %.200s", err, svg)
	}
}

func TestJSONStaysAloneOnStandardOutput(t *testing.T) {
	dir := t.TempDir()
	var g good
	gather.JSON(t, "-ranks 2 -metrics 127.0.0.1:0 -trace "+dir+"/t.json -plot "+dir+"/t.png", &g)
	if !g.OK {
		t.Error("the result is not what the program returned")
	}
}

func TestFilesAndAddressesThatCannotBeAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	nowhere := filepath.Join(t.TempDir(), "no", "t.json")
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"-plot t.gif":                                  {2, "-plot: picture: t.gif"},
		"-trace " + nowhere:                            {1, "-trace"},
		"-plot " + nowhere + ".svg":                    {1, "-plot"},
		"-metrics " + taken.Addr().String():            {1, "-metrics"},
		"-metrics nonsense":                            {1, "-metrics"},
		"-metrics 127.0.0.1:0 -linger for-a-long-time": {2, "-linger"},
		"-metrics 127.0.0.1:0 -linger -1s":             {2, "-linger is -1s"},
	} {
		t.Run(args, func(t *testing.T) {
			o := gather.With("-ranks 2 -json " + args)
			if n := strings.Count(o.Err, "gather: "); o.Code != want.code || n != 1 || !strings.Contains(o.Err, want.says) {
				t.Errorf("status %d, want %d and %q: %s", o.Code, want.code, want.says, o.Err)
			}
		})
	}
}

func TestABarShowsHowFarWorkHasCome(t *testing.T) {
	bar := gather
	bar.Run = func(_ context.Context, f *example.Flags) (example.Result, error) {
		for i := range 3 {
			f.Bar("step", i+1, 3, "loss 1.5")
		}
		return good{true}, nil
	}
	// Standard error is no terminal here, so nothing is drawn over.
	if o := bar.With("-ranks 2"); strings.Contains(o.Err, "\r") {
		t.Errorf("a bar is drawn into a file: %q", o.Err)
	}
	if o := bar.With("-ranks 2 -json"); o.Err != "" {
		t.Errorf("with -json there is %q", o.Err)
	}
}
