package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
	"github.com/triggeredplans/sluice/rank"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type outcome struct {
	code        int
	stdout, err string
}

func run(args string) outcome {
	var p program
	var stdout, stderr bytes.Buffer
	code := example.Run(context.Background(), name, what, strings.Fields(args), &stdout, &stderr, p.flags, p.run)
	return outcome{code, stdout.String(), stderr.String()}
}

// runJSON is a run with -json that must succeed.
func runJSON(t *testing.T, args string) (r result) {
	t.Helper()
	o := run(args + " -json")
	d := json.NewDecoder(strings.NewReader(o.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || o.code != 0 || !r.AllRight {
		t.Fatalf("%s: status %d, %v: %s%s", args, o.code, err, o.stdout, o.err)
	}
	return r
}

func TestTheLossFallsAndOtherNumbersOfRanksAgree(t *testing.T) {
	r := runJSON(t, "-ranks 4 -steps 40 -compare")
	if math.Abs(r.FirstLoss-math.Log(vocab)) > 0.5 || r.FinalLoss > 0.8*r.FirstLoss {
		t.Errorf("the loss goes from %v to %v", r.FirstLoss, r.FinalLoss)
	}
	if len(r.Compared) != 2 || r.Compared[0].Ranks != 1 || r.Compared[1].Ranks != 2 {
		t.Fatalf("compared with %+v", r.Compared)
	}
	for _, c := range r.Compared {
		if !c.Agrees || c.Difference > tolerance {
			t.Errorf("%+v", c)
		}
	}
}

func TestAnyNumberOfRanksAndProgramsTrainsTheSame(t *testing.T) {
	want := runJSON(t, "-ranks 1 -steps 6 -programs 1").FinalLoss
	for _, args := range []string{"-ranks 3 -programs 5", "-ranks 8 -programs 2", "-ranks 2 -programs 64"} {
		if got := runJSON(t, args+" -steps 6").FinalLoss; math.Abs(got-want)/want > tolerance {
			t.Errorf("%s: the loss is %v, on one rank %v", args, got, want)
		}
	}
	if other := runJSON(t, "-ranks 1 -steps 6 -seed 2").FinalLoss; other == want {
		t.Errorf("seeds 1 and 2 both give %v", other)
	}
}

func TestGoingOnFromACheckpointIsLikeNeverHavingStopped(t *testing.T) {
	whole := runJSON(t, "-ranks 2 -steps 30")
	file := filepath.Join(t.TempDir(), "c")
	runJSON(t, "-ranks 4 -steps 13 -checkpoint "+file)
	runJSON(t, "-ranks 2 -steps 7 -checkpoint "+file)
	r := runJSON(t, "-ranks 3 -steps 10 -compare -checkpoint "+file)
	if r.FirstStep != 20 || math.Abs(r.FinalLoss-whole.FinalLoss)/whole.FinalLoss > tolerance || math.Abs(r.FirstLoss-whole.FirstLoss) > tolerance {
		t.Errorf("steps %d to 29 end with %v, those of a run without stop with %v", r.FirstStep, r.FinalLoss, whole.FinalLoss)
	}
	c, err := readCheckpoint(file, 1)
	if err != nil || c.Step != 30 || len(c.Losses) != 30 || c.Losses[29] != r.FinalLoss || math.Abs(c.Losses[15]-whole.FirstLoss) < 0.1 {
		t.Errorf("the checkpoint has %d steps, error %v", c.Step, err)
	}
	for name, o := range map[string]outcome{
		"-seed 1": run("-ranks 2 -steps 1 -seed 7 -checkpoint " + file),
		"no checkpoint": func() outcome {
			bad := filepath.Join(t.TempDir(), "bad")
			if err := os.WriteFile(bad, []byte("something else"), 0o600); err != nil {
				t.Fatal(err)
			}
			return run("-ranks 2 -steps 1 -checkpoint " + bad)
		}(),
		"no such file": run("-ranks 2 -steps 1 -checkpoint " + filepath.Join(t.TempDir(), "no", "where")),
	} {
		if o.code != 1 || !strings.Contains(o.err, name) || strings.Count(o.err, "\n") != 1 {
			t.Errorf("want an error with %q, got status %d: %s", name, o.code, o.err)
		}
	}
}

func TestAParameterThatArrivesWrongIsNoticed(t *testing.T) {
	if exampletest.RaceDetector {
		t.Skip("the wrong copy reads what a kernel may still be writing, which the race detector tells")
	}
	var once sync.Once
	wrong := func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		// The last block's first chunk is copied from the block before instead.
		if p.Op == sdma.OpCopyLinear && from.Device == 1 && to.Device == 0 && p.Copy.Width == blockRows*width*4 {
			once.Do(func() { p.Copy.Src += blockRows * width * 4 })
		}
		return nil
	}
	node, err := rank.NewNode(rank.NodeConfig{Intercept: wrong})
	if err != nil {
		t.Fatal(err)
	}
	tr := &training{seed: 1, steps: 3, programs: 2}
	_, err = tr.run(t.Context(), rank.Config{Ranks: 2, Platform: "host", Node: node, HeapBytes: heapBytes(2)}, rank.Run)
	if mismatch := (*mismatchError)(nil); !errors.As(err, &mismatch) || mismatch.step != 0 {
		t.Errorf("got %v, want a mismatch in step 0", err)
	}
}

func TestACurveIsDrawn(t *testing.T) {
	dir := t.TempDir()
	runJSON(t, "-ranks 2 -steps 25 -compare -plot "+dir+"/l.svg")
	svg, err := os.ReadFile(dir + "/l.svg")
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for err == nil {
		_, err = d.Token()
	}
	if err != io.EOF || !bytes.Contains(svg, []byte("nats per character")) || !bytes.Contains(svg, []byte("1 rank")) {
		t.Errorf("the picture is not what it should be: %v", err)
	}
	if o := run("-steps 1 -plot x.gif"); o.code != 1 || !strings.Contains(o.err, ".svg or .png") {
		t.Errorf("status %d: %s", o.code, o.err)
	}
}

// served finds the address in what a program says.
var served = regexp.MustCompile(`http://([^/]+)/metrics`)

// teller hands on the first address that is written to it.
type teller struct {
	mu   sync.Mutex
	text strings.Builder
	at   chan string
}

func (w *teller) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if m := served.FindStringSubmatch(w.text.String()); m != nil && w.at != nil {
		w.at <- m[1]
		w.at = nil
	}
	return len(p), nil
}

func TestMetricsAndPageAreServedWhileItTrains(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &teller{at: make(chan string, 1)}
	at := stderr.at
	ended := make(chan int, 1)
	const steps = 50
	args := fmt.Sprintf("-ranks 2 -steps %d -json -metrics 127.0.0.1:0 -linger 1h", steps)
	go func() {
		var p program
		ended <- example.Run(ctx, name, what, strings.Fields(args), io.Discard, stderr, p.flags, p.run)
	}()
	defer http.DefaultClient.CloseIdleConnections()
	address := <-at
	figure := func(text, name string) (f float64) {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `.* (\S+)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s is not in\n%s", name, text)
		}
		f, _ = strconv.ParseFloat(m[1], 64)
		return f
	}
	const rounds, waits = `sluice_rounds_total{rank="1"`, `sluice_queue_gate_wait_seconds_count{queue="host:0→host:1"`
	const prepared, peak = `sluice_queue_prepared_bytes{queue="host:0→host:1"`, `sluice_queue_prepared_peak_bytes{queue="host:0→host:1"`
	values := map[string]map[float64]bool{rounds: {}, waits: {}, prepared: {}}
	text, sawPlan := "", false
	for {
		text = get(t, "http://"+address+"/metrics")
		for name, seen := range values {
			seen[figure(text, name)] = true
		}
		hasPlan := strings.Contains(text, "sluice_plan_round{")
		sawPlan = sawPlan || hasPlan
		if figure(text, rounds) == 2*steps && !hasPlan {
			break
		}
	}
	for name, seen := range values {
		if len(seen) < 2 {
			t.Errorf("%s has not changed: %v", name, seen)
		}
	}
	if !sawPlan || figure(text, prepared) != 0 || figure(text, peak) == 0 {
		t.Errorf("plans were seen: %v; at the end there is\n%s", sawPlan, text)
	}
	if page := get(t, "http://"+address+"/debug/sluice"); !strings.Contains(page, "There are none now.") {
		t.Errorf("the page still has a plan: %s", page)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("interrupted when it was done, it ended with status %d: %s", code, stderr.text.String())
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%s: status %d, %v", url, r.StatusCode, err)
	}
	return string(body)
}
