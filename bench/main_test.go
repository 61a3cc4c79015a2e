package main

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench runs the program and returns what it prints.
func bench(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	if got := run(t.Context(), args, &out, &notes); got != status {
		t.Fatalf("bench %v ends with %d, not %d:\n%s", args, got, status, notes.String())
	}
	return out.String(), notes.String()
}

func TestEveryFigureIsMeasured(t *testing.T) {
	for _, f := range figures {
		if f.name == "openmpi" { // another program's
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			out, _ := bench(t, 0, "-scope", "brief", "-repeats", "1", "-json", "-run", "^"+f.name+"$")
			all, err := read(strings.NewReader(out))
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				t.Fatal("it prints no result")
			}
			for _, r := range all {
				if r.Figure != f.name || r.Case == "" || r.Unit == "" || len(r.Samples) == 0 || r.Machine == "" || r.Date == "" || r.Command == "" {
					t.Errorf("a result lacks something: %+v", r)
				}
				if r.Low > r.Median || r.Median > r.High {
					t.Errorf("%s: the spread %v to %v is not around %v", r.Case, r.Low, r.High, r.Median)
				}
			}
		})
	}
}

func TestOpenMPIIsLeftOutWhereThereIsNone(t *testing.T) {
	_, notes := bench(t, 0, "-run", "openmpi")
	if !strings.Contains(notes, "left out") {
		t.Errorf("nothing says that it is left out: %q", notes)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-scope", "huge"}, {"-run", "("}, {"-no-such-flag"}, {"-json", "more"}, {"-plot", "x.svg"}} {
		if _, notes := bench(t, 2, args...); notes == "" {
			t.Errorf("bench %v says nothing", args)
		}
	}
	if _, notes := bench(t, 1, "-run", "nothing like it"); !strings.Contains(notes, "-list") {
		t.Errorf("what names no figure is not told how to find them: %q", notes)
	}
}

func TestTheListNamesEveryFigure(t *testing.T) {
	out, _ := bench(t, 0, "-list")
	for _, f := range figures {
		if !strings.Contains(out, f.name) {
			t.Errorf("%s is not listed", f.name)
		}
	}
}

func TestAFileGivesOneLineForEverySample(t *testing.T) {
	file := save(t, newResult("trigger", "after 1 ms idle", "×parked goroutine", []float64{1.5, 2.5}).atMost(2))
	out, _ := bench(t, 0, "-benchstat", file)
	want := "Benchmark/trigger/after-1-ms-idle 1 1.5 xparked-goroutine\nBenchmark/trigger/after-1-ms-idle 1 2.5 xparked-goroutine\n"
	if out != want {
		t.Errorf("printed\n%snot\n%s", out, want)
	}
}

func TestGrowthIsDrawnFromAFile(t *testing.T) {
	var all []result
	for _, x := range []float64{1, 10, 100} {
		r := newResult("growth", "a round: chunks × peers = n", "µs", []float64{3 * x})
		r.X = x
		all = append(all, r)
	}
	picture := filepath.Join(t.TempDir(), "growth.svg")
	bench(t, 0, "-plot", picture, save(t, all...))
	if drawn, err := os.ReadFile(picture); err != nil || !bytes.Contains(drawn, []byte("a round")) {
		t.Errorf("the picture does not show the line (%v)", err)
	}
	if _, notes := bench(t, 1, "-plot", picture, save(t, newResult("rounds", "x", "y", []float64{1}))); !strings.Contains(notes, "no growth") {
		t.Errorf("a file without growth figures: %q", notes)
	}
}

// save writes results as -json does.
func save(t *testing.T, all ...result) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "results.json")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, r := range all {
		if err := newLines(f).print(r); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func TestCheckFailsWhenALimitIsMissed(t *testing.T) {
	saved := figures
	defer func() { figures = saved }()
	figures = []figure{{"slow", "", func(s *suite) error {
		return s.emit(s.result("x", "y", []float64{3}).atMost(2))
	}}}
	if out, _ := bench(t, 0); !strings.Contains(out, "MISSED") {
		t.Errorf("the table does not say so:\n%s", out)
	}
	bench(t, 1, "-check")
}

func TestTableShowsThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 0.5: "0.500", 1.236: "1.24", 45.67: "45.7", 1234: "1234", -2.5: "-2.50"} {
		if got := digits(v); got != want {
			t.Errorf("%v is shown as %s, not %s", v, got, want)
		}
	}
}

func TestTurnsAreInterleaved(t *testing.T) {
	var order []string
	note := func(name string) func() (float64, error) {
		return func() (float64, error) {
			order = append(order, name)
			return float64(len(order)), nil
		}
	}
	samples, err := takeTurns(2, note("a"), note("b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "a", "b", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, not %v", order, want)
	}
	if !slices.Equal(samples[0], []float64{3, 5}) || !slices.Equal(samples[1], []float64{4, 6}) {
		t.Errorf("samples are %v; the first turn warms up and does not count", samples)
	}
	if _, err := takeTurns(1, func() (float64, error) { return 0, io.EOF }); err != io.EOF {
		t.Errorf("a measurement's error is lost: %v", err)
	}
}

func TestLimitsAreForTheMedian(t *testing.T) {
	r := newResult("f", "c", "u", []float64{1, 2, 9})
	for _, c := range []struct {
		r      result
		missed bool
	}{{r, false}, {r.atMost(2), false}, {r.atMost(1.9), true}, {r.atLeast(2), false}, {r.atLeast(2.1), true}} {
		if c.r.missed() != c.missed {
			t.Errorf("%s with median %v: missed is %v", verdict(&c.r), c.r.Median, c.r.missed())
		}
	}
}

func TestAnEmptyRunHasNoMedian(t *testing.T) {
	if got := digits(newResult("", "", "", nil).Median); got != "NaN" {
		t.Errorf("the median of nothing is %s", got)
	}
}

func TestASlopeIsThePower(t *testing.T) {
	for _, power := range []float64{0.5, 1, 2} {
		var line fit
		for _, x := range []float64{1, 10, 100, 5000} {
			line.add(math.Log(x), math.Log(3*math.Pow(x, power)))
		}
		if got := line.slope(); math.Abs(got-power) > 1e-9 {
			t.Errorf("3·x^%v has slope %v", power, got)
		}
	}
}
