package plan

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// event is one that the model prints.
type event struct {
	name string
	as   string   // of the history
	args []string // figures, from the arguments $0, $1 and so on of its printf
}

// The model prints every event. For a history to be followed, the events that
// can be seen of a run are compared with it instead; the others happen between
// them as they like. Each has a number, which its figures are packed into.
var seen = []event{
	{"Take", "Take", []string{"$0", "$1", "($2 == OK -> 0 : ($2 == REFUSED -> 1 : 2))"}},
	{"Start", "Start", []string{"$0", "$1"}},
	{"Mark", "Mark", []string{"$0", "$1"}},
	{"ExtraMark", "ExtraMark", []string{"$0", "$1"}},
	{"Send", "Send", []string{"$0", "$1", "$2"}},
	{"Wait", "Wait", []string{"$0", "$1", "($2 == DONE -> 0 : 1)"}},
	{"WaitEnds", "Wait", []string{"$0", "$1", "1"}},
	{"Close", "Close", []string{"$0", "$1"}},
	{"Closed", "Closed", []string{"$0", "$1"}},
	{"Closing", "Closing", []string{"$0", "$1"}},
	{"Crossed", "Crossed", []string{"$0", "$1"}},
	{"CloseEnds", "CloseEnds", []string{"$0", "$1"}},
	{"End", "End", []string{"$0"}},
}

// number packs an event's name and figures.
func number(h happening) int {
	for i, s := range seen {
		if s.name == h.name {
			n := i + 1
			for _, a := range h.args {
				n = n*4 + a
			}
			return n
		}
	}
	return 0
}

// printed is the printf of an event of a rank or a queue.
var printed = regexp.MustCompile(`printf\("(?:rank|queue) %d(?:>%d)?: (\w+)[^"]*"((?:, (?:[^(),]|\([^()]*\))+)*)\)`)

// followed is the model with its events compared with a history, which the
// program that checks it reads: the figures of SLUICE_HISTORY. Wherever the
// history is left, the search goes no further; at its end it succeeds.
func followed(model string) (string, error) {
	found := map[string]bool{}
	model = printed.ReplaceAllStringFunc(model, func(call string) string {
		m := printed.FindStringSubmatch(call)
		for i, s := range seen {
			if s.name != m[1] {
				continue
			}
			found[s.name] = true
			n := fmt.Sprint(i + 1)
			if j := slices.IndexFunc(seen[:i], func(o event) bool { return o.as == s.as }); j >= 0 {
				n = fmt.Sprint(j + 1)
			}
			given := strings.Split(strings.TrimPrefix(m[2], ", "), ", ")
			for k := range len(happening{}.args) {
				figure := "0"
				if k < len(s.args) {
					figure = s.args[k]
					for a, text := range given {
						figure = strings.ReplaceAll(figure, fmt.Sprint("$", a), text)
					}
				}
				n = fmt.Sprintf("(%s)*4+(%s)", n, figure)
			}
			return fmt.Sprintf("Seen(%s)", n)
		}
		return call
	})
	for _, s := range seen {
		if !found[s.name] {
			return "", fmt.Errorf("the model has no event %s of a rank or queue", s.name)
		}
	}
	return follow + model + claim, nil
}

const follow = `
c_decl { extern int history[256], history_length; }
c_code {
int history[256], history_length;
__attribute__((constructor)) static void history_read(void) {
	char *s = getenv("SLUICE_HISTORY");
	for (int i = 0; i < 256; i++) { history[i] = -1; }
	for (; s && *s && history_length < 250; history_length++) { history[history_length] = strtol(s, &s, 10); }
}
}
int event;
byte at; /* events seen; 255 once the history is left */
#define Seen(n) event = n; if :: c_expr { history[now.at] == now.event } -> at++ :: else -> at = 255 fi; event = 0
`

const claim = `
never {
	do
	:: c_expr { now.at == history_length } -> break
	:: c_expr { now.at < history_length }
	od
}
`

// searchTime bounds one search, which takes milliseconds.
const searchTime = 2 * time.Minute

// checker is the program that says whether a history is one of the model's, in
// which up to so many mishaps may happen. It is built once in a process.
type checker struct {
	mishaps int
	build   func() (dir string, err error)
}

var (
	lenient = newChecker(4)
	strict  = newChecker(0)
)

func newChecker(mishaps int) *checker {
	c := &checker{mishaps: mishaps}
	c.build = sync.OnceValues(c.compile)
	return c
}

// dirs are what checkers were built in, for TestMain to remove.
var dirs []string

func (c *checker) compile() (dir string, err error) {
	text, err := os.ReadFile("model/plan.pml")
	if err != nil {
		return "", err
	}
	model, err := followed(string(text))
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "sluice-model"); err != nil {
		return "", err
	}
	dirs = append(dirs, dir)
	if err := os.WriteFile(filepath.Join(dir, "plan.pml"), []byte(model), 0o644); err != nil {
		return "", err
	}
	for _, cmd := range [][]string{
		{"spin", "-a", "-DPASS_LATER", fmt.Sprintf("-DFAULTS=%d", c.mishaps), fmt.Sprintf("-DWRITERS=%d", modelWriters), fmt.Sprintf("-DROUNDS=%d", modelRounds), "plan.pml"},
		{"cc", "-O0", "-w", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=1024", "-DVECTORSZ=2048", "-o", "pan", "pan.c"},
	} {
		run := exec.Command(cmd[0], cmd[1:]...)
		run.Dir = dir
		if out, err := run.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return dir, nil
}

// follows says whether the model can do what happened. The test is skipped
// where there is no spin or no C compiler.
func (c *checker) follows(t *testing.T, events []happening) bool {
	t.Helper()
	for _, tool := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the model cannot be run without %s: %v", tool, err)
		}
	}
	dir, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	var figures strings.Builder
	for _, e := range events {
		fmt.Fprint(&figures, number(e), " ")
	}
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	defer cancel()
	run := exec.CommandContext(ctx, "./pan", "-A", "-E", "-m20000", "-w16")
	run.Dir = dir
	run.Env = append(os.Environ(), "SLUICE_HISTORY="+strings.TrimSpace(figures.String()))
	out, err := run.CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("end state in claim reached")):
		return true
	case err != nil || !bytes.Contains(out, []byte("errors: 0")) || bytes.Contains(out, []byte("not completed")) || bytes.Contains(out, []byte("max search depth too small")):
		t.Fatalf("the search did not end: %v\n%s", err, out)
	}
	return false
}
