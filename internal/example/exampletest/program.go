package exampletest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/rank"
)

// Program is a program under test: what it passes to example.Main.
type Program struct {
	Name, What string
	Flags      func(*flag.FlagSet)
	Run        func(context.Context, *example.Flags) (example.Result, error)
}

// With runs the program in the test's process, with arguments separated by
// spaces.
func (p Program) With(args string) Outcome {
	var stdout, stderr bytes.Buffer
	code := example.Run(context.Background(), p.Name, p.What, strings.Fields(args), &stdout, &stderr, p.Flags, p.Run)
	return Outcome{code, stdout.String(), stderr.String()}
}

// Platform is where programs run unless -platform says otherwise.
func Platform() string { return cmp.Or(os.Getenv(hip.PlatformSetting), "host") }

// JSON is With and -json, which must succeed; it reads the result into to.
func (p Program) JSON(t *testing.T, args string, to any) {
	t.Helper()
	o := p.With(args + " -json")
	if o.Code != 0 {
		t.Fatalf("%s: status %d: %s", args, o.Code, o.Err)
	}
	o.Decode(t, to)
}

// Node is a node for programs under test: its rings are small, since there are
// many of them.
func Node(t *testing.T) *rank.Node {
	t.Helper()
	n, err := rank.NewNode(rank.NodeConfig{RingBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// asProgram, in the environment, makes the test binary the program itself.
const asProgram = "SLUICE_TEST_AS_PROGRAM"

// Main is TestMain for a program's package.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
	}
	goleak.VerifyTestMain(m)
}

// Status runs the program in a process of its own, with arguments separated by
// spaces, and checks the status it ends with.
func Status(t *testing.T, args string, want int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, strings.Fields(args)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Errorf("%s: status %d, want %d: %s", args, got, want, out)
	}
}
