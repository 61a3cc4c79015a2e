package model

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The sizes to check. The small ones are for every test run, the others for
// `make model`, which sets SLUICE_MODEL.
var (
	small      = Size{Ranks: 2, Plans: 1, Own: 1, Rounds: 2, Faults: 1}
	mishaps    = Size{Ranks: 2, Plans: 1, Own: 1, Rounds: 2, Faults: 2}
	twoChunks  = Size{Ranks: 2, Plans: 1, Own: 2, Rounds: 2, Faults: 1}
	oneRound   = Size{Ranks: 2, Plans: 2, Own: 1, Rounds: 1, Faults: 1}
	twoPlans   = Size{Ranks: 2, Plans: 2, Own: 1, Rounds: 2, Faults: 1}
	fourChunks = Size{Ranks: 2, Plans: 2, Own: 2, Rounds: 2, MarkOpens: true}
	threeRanks = Size{Ranks: 3, Plans: 1, Own: 1, Rounds: 2, Faults: 1, MarkOpens: true}
	calmRound  = Size{Ranks: 2, Plans: 2, Own: 1, Rounds: 1}
	calm       = Size{Ranks: 2, Plans: 2, Own: 1, Rounds: 2}
	calmThree  = Size{Ranks: 3, Plans: 1, Own: 1, Rounds: 2}
)

// thorough is what `make model` asks for.
func thorough() bool { return os.Getenv("SLUICE_MODEL") != "" }

// run compiles the model and explores it.
func run(t *testing.T, size Size, mutation string, search Search) Result {
	t.Helper()
	began := time.Now()
	c := compile(t, size, mutation, search)
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v: %d states in %.1f s", size, r.States, time.Since(began).Seconds())
	return r
}

func compile(t *testing.T, size Size, mutation string, search Search) *Checker {
	t.Helper()
	for _, tool := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(tool); err != nil && !thorough() {
			t.Skipf("no %s here; 'make model' insists on it", tool)
		}
	}
	c, err := Compile(t.Context(), t.TempDir(), size, mutation, search)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sizes(always []Size, thoroughly ...Size) []Size {
	if thorough() {
		return append(always, thoroughly...)
	}
	return always
}

// SLUICE_MUTATION has a mutation take the place of the true protocol, which
// fails and prints the counterexample.
func TestEveryReachableStateHasTheProperties(t *testing.T) {
	all := sizes([]Size{small}, threeRanks, twoPlans, fourChunks, twoChunks, mishaps)
	mutation := os.Getenv("SLUICE_MUTATION")
	if mutation != "" {
		i := slices.IndexFunc(mutations, func(m mutated) bool { return m.name == mutation })
		if i < 0 {
			t.Fatalf("there is no mutation %s", mutation)
		}
		all = []Size{mutations[i].size}
	}
	for _, size := range all {
		t.Run(size.String(), func(t *testing.T) {
			t.Parallel()
			search := Safety
			if size == small || mutation != "" {
				search = Shortest
			}
			if r := run(t, size, mutation, search); r.Violated != "" {
				t.Errorf("violated: %s, after\n%s", r.Violated, strings.Join(r.Events, "\n"))
			}
		})
	}
}

// With the states in which nothing can happen any more ruled out, this means
// that every Close returns, however the ranks' steps mingle.
func TestEveryRunEnds(t *testing.T) {
	for _, size := range sizes([]Size{small}, calm, calmThree) {
		t.Run(size.String(), func(t *testing.T) {
			t.Parallel()
			if r := run(t, size, "", Cycles); r.Violated != "" {
				t.Errorf("%s, after\n%s", r.Violated, strings.Join(r.Events, "\n"))
			}
		})
	}
}

// The properties, in the words of plan.pml.
const (
	landsLate   = "no byte of a round lands before every rank handed the last one back"
	sentMarked  = "no chunk is sent before its marks"
	waitFails   = "Wait fails when a chunk was sent before its marks"
	noTrace     = "a round that is refused leaves no trace"
	oneVerdict  = "all ranks get the same verdict"
	freedCopy   = "no memory is freed before the last copy that uses it"
	freedKernel = "no kernel marks in memory that is freed"
	terminates  = "a deadline is needed only where a Wait crosses a Close"
)

// mutated is the protocol without one rule, and the property that a shortest
// counterexample violates.
type mutated struct {
	name     string
	size     Size
	violates string
}

var mutations = []mutated{
	{"NO_BARRIER", small, landsLate},
	{"RING_EARLY", small, noTrace},
	{"OPEN_FIRST", small, sentMarked},
	{"FREE_EARLY", small, freedCopy},
	{"RESET_GATES", small, terminates},
	{"IGNORE_EXTRA", small, waitFails},
	{"IGNORE_CUT", small, waitFails},
	{"IGNORE_GONE", small, terminates},
	{"IGNORE_CLOSE", small, terminates},
	{"IGNORE_CROSSING", oneRound, terminates},
	{"HOLD_CLOSE", calmRound, terminates},
	{"KEEP_SHUT", small, terminates},
	{"NO_PROXY", small, terminates},
	{"FREE_BUSY", small, freedKernel},
	{"LATE_WITHDRAW", small, oneVerdict},
}

func TestEveryMutationHasACounterexample(t *testing.T) {
	for i, m := range mutations {
		if i > 0 && !thorough() {
			break
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, m.size, m.name, Shortest)
			if r.Violated != m.violates || len(r.Events) == 0 {
				t.Errorf("violated: %q after %d events, want %q", r.Violated, len(r.Events), m.violates)
			}
			t.Logf("violated: %s, after\n%s", r.Violated, strings.Join(r.Events, "\n"))
		})
	}
}

func TestTheMutationsAreThoseOfTheModel(t *testing.T) {
	var want []string
	for line := range strings.Lines(string(source)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.HasPrefix(fields[0], "#if") && strings.HasPrefix(fields[2], "/*") && fields[1] != "MARK_OPENS" {
			want = append(want, fields[1])
		}
	}
	var got []string
	for _, m := range mutations {
		got = append(got, m.name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("checked %q, plan.pml has %q", got, want)
	}
}

// What never happens in the model cannot violate anything.
func TestEveryEventHappens(t *testing.T) {
	want := map[string]bool{}
	for line := range strings.Lines(string(source)) {
		if line == " */\n" {
			break
		}
		if fields := strings.Fields(line); strings.HasPrefix(line, " *   ") && len(fields) > 1 {
			want[fields[1]] = true
		}
	}
	delete(want, "Crossed") // the counterexample to IGNORE_CROSSING shows where
	if !thorough() {
		delete(want, "Closing") // it takes two plans
	}
	for _, size := range sizes([]Size{small}, calmRound) {
		for name := range happened(t, size) {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("never happen: %v", slices.Sorted(maps.Keys(want)))
	}
}

// happened is the names of all events in every run of the model.
func happened(t *testing.T, size Size) map[string]bool {
	t.Helper()
	c := compile(t, size, "", narrated)
	cmd := exec.CommandContext(t.Context(), "./pan", "-m100000", "-w24")
	cmd.Dir = c.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := event.FindStringSubmatch(strings.TrimSpace(lines.Text())); found != nil {
			names[found[1]] = true
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return names
}
