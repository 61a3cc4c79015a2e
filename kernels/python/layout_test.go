package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
)

// inPython are the values of the Python layout.
func inPython(t *testing.T) map[string]int {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("sluice_view", "layout.py"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+) = (\d+)$`).FindAllStringSubmatch(string(source), -1) {
		all[m[1]], _ = strconv.Atoi(m[2])
	}
	if lines := regexp.MustCompile(`(?m)^[A-Z].*=`).FindAllString(string(source), -1); len(lines) != len(all) {
		t.Errorf("layout.py has %d assignments, and %d are understood", len(lines), len(all))
	}
	return all
}

// places are the layout's values by their names in Python, with those that C's
// program prints. C has bytes where Python has words.
var places = map[string]struct {
	c    string
	inGo int
}{
	"ABI_VERSION":        {"version", kernels.ABIVersion},
	"GATE_BYTES":         {"gate", kernels.GateRow},
	"GATE_READY":         {"gate.ready", kernels.GateReady},
	"GATE_ARRIVAL":       {"gate.arrival", kernels.GateArrival},
	"GATE_WRITERS":       {"gate.writers", kernels.GateWriters},
	"FAULT_BYTES":        {"fault", kernels.FaultRow},
	"FAULT_FOREIGN":      {"fault.foreign", kernels.FaultForeign},
	"FAULT_LAST":         {"fault.last", kernels.FaultLast},
	"FAULT_EXTRA":        {"fault.extra", kernels.FaultExtra},
	"VERSION_WORD":       {"handle.version", kernels.HandleVersion},
	"CHUNKS_WORD":        {"handle.chunks", kernels.HandleChunks},
	"RANK_WORD":          {"handle.rank", kernels.HandleRank},
	"ROUND_WORD":         {"handle.round", kernels.HandleRound},
	"GATES_WORD":         {"handle.gates", kernels.HandleGates},
	"WORLD_WORD":         {"handle.world", kernels.HandleWorld},
	"FIRST_WORD":         {"handle.first", kernels.HandleFirst},
	"OWN_WORD":           {"handle.own", kernels.HandleOwn},
	"TABLES_WORD":        {"handle.tables", kernels.HandleTables},
	"FAULTS_WORD":        {"handle.faults", kernels.HandleFaults},
	"TRACE_WORD":         {"handle.trace", kernels.HandleTrace},
	"HANDLE_WORDS":       {"handle", kernels.HandleChunkWords},
	"CHUNK_WRITERS_WORD": {"chunk.writers", 0},
	"CHUNK_OWNER_WORD":   {"chunk.owner", 1},
	"CHUNK_WORDS":        {"chunk", kernels.HandleWords(2) - kernels.HandleWords(1)},
}

func TestPythonLaysOutWordsAsGoDoes(t *testing.T) {
	all := inPython(t)
	for name, at := range places {
		if n, ok := all[name]; !ok || n != at.inGo {
			t.Errorf("%s is %d in Python, %d in Go", name, n, at.inGo)
		}
		delete(all, name)
	}
	if len(all) > 0 {
		t.Errorf("Go does not know of %v", all)
	}
}

func TestPythonLaysOutWordsAsTheHeaderDoes(t *testing.T) {
	cc := ""
	for _, name := range []string{"cc", "gcc", "clang-22", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			cc = path
			break
		}
	}
	if cc == "" {
		t.Skip("there is no C compiler")
	}
	program := filepath.Join(t.TempDir(), "layout")
	if out, err := exec.CommandContext(t.Context(), cc, "-I../include", "../test/layout.c", "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).Output()
	if err != nil {
		t.Fatal(err)
	}
	inC := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		if inC[name], err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	all := inPython(t)
	for name, at := range places {
		want := all[name]
		if strings.HasSuffix(name, "_WORD") || strings.HasSuffix(name, "_WORDS") {
			want *= 8
		}
		if got, ok := inC[at.c]; !ok || got != want {
			t.Errorf("%s is at %d in the header, %s at %d in Python", at.c, got, name, want)
		}
	}
}

func TestBothViewsHaveTheSameMethods(t *testing.T) {
	methods := func(file string) []string {
		source, err := os.ReadFile(filepath.Join("sluice_view", file))
		if err != nil {
			t.Fatal(err)
		}
		_, class, ok := strings.Cut(string(source), "class TriggeredView:")
		if !ok {
			t.Fatalf("%s has no TriggeredView", file)
		}
		return regexp.MustCompile(`(?m)^    def (\w+\(.*?\)):`).FindAllString(class, -1)
	}
	triton, gluon := methods("triton_view.py"), methods("gluon_view.py")
	if !slices.Equal(triton, gluon) {
		t.Errorf("Triton's has %v, Gluon's %v", triton, gluon)
	}
	for _, name := range []string{"initialize", "mark_ready", "arrived", "wait"} {
		if !slices.ContainsFunc(triton, func(m string) bool { return strings.Contains(m, "def "+name+"(") }) {
			t.Errorf("there is no method %s", name)
		}
	}
}
