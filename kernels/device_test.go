package kernels_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/kernels"
)

// tool is the first of the programs that is installed. Without any, the test
// is skipped.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is installed", names)
	return ""
}

// output runs a program and returns what it printed.
func output(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(b), err
}

func mustOutput(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := output(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// emulated builds test/emulated.cpp, which runs the device kernels' source on
// the host's threads, against the header in dir.
func emulated(t *testing.T, cxx, dir string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "emulated")
	args := append(flags, "-std=c++17", "-g", "-Wall", "-Wextra", "-I"+dir, "src/host.cpp", "test/scenario.cpp", "test/emulated.cpp", "-pthread", "-o", program)
	mustOutput(t, cxx, args...)
	return program
}

// sanitizer is a C++ compiler whose ThreadSanitizer works here.
func sanitizer(t *testing.T) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "empty.cpp")
	if err := os.WriteFile(source, []byte("int main() { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	why := ""
	for _, cxx := range []string{"clang++-22", "g++", "clang++"} {
		program := source + ".out"
		out, err := output(t, cxx, "-fsanitize=thread", source, "-o", program)
		if err == nil {
			out, err = output(t, program)
		}
		if err == nil {
			return cxx
		}
		why += fmt.Sprintf("\n%s: %v %s", cxx, err, out)
	}
	t.Skipf("no C++ compiler with a ThreadSanitizer that runs here:%s", why)
	return ""
}

func TestDeviceKernelsDoOnHostThreadsWhatTheyMust(t *testing.T) {
	program := emulated(t, tool(t, "g++", "clang++-22", "c++"), "include", "-O2")
	out := mustOutput(t, program)
	if n := strings.Count(out, " ok\n"); n != 8 {
		t.Errorf("%d scenarios are fine, want 8:\n%s", n, out)
	}
	mustOutput(t, program, "trap")
}

func TestDeviceAndGoComputeTheSameOrderAndPattern(t *testing.T) {
	program := emulated(t, tool(t, "g++", "clang++-22", "c++"), "include")
	for _, c := range [][3]int{{1, 1, 1}, {5, 7, 1}, {5, 7, 3}, {8, 3, 8}, {9, 4, 4}, {2, 6, 5}} {
		var want strings.Builder
		for step := range c[0] * c[1] {
			fmt.Fprintln(&want, kernels.TileOf(step, c[0], c[1], c[2]))
		}
		if got := mustOutput(t, program, "order", strconv.Itoa(c[0]), strconv.Itoa(c[1]), strconv.Itoa(c[2])); got != want.String() {
			t.Errorf("order of %v: the device says\n%s, Go says\n%s", c, got, want.String())
		}
	}
	for i, c := range [][2]uint64{{0, 64}, {1, 1}, {7, 30}, {100, 77}} {
		seed := kernels.SeedOf(uint64(i)<<60, i, 1<<32-1)
		want := make([]byte, c[1])
		kernels.FillPattern(want, seed, c[0])
		got := mustOutput(t, program, "pattern", strconv.FormatUint(seed, 10), strconv.FormatUint(c[0], 10), strconv.FormatUint(c[1], 10))
		if got != fmt.Sprintf("%x\n", want) {
			t.Errorf("pattern %d at %d: the device says %s, Go says %x", seed, c[0], got, want)
		}
	}
}

// Data races between a producer, its copies and a consumer are what the order
// excludes.
func TestProofThreadSanitizerFindsNoRaceInTheHeader(t *testing.T) {
	program := emulated(t, sanitizer(t), "include", "-O1", "-fsanitize=thread")
	if out, err := output(t, program, "litmus", "10"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestProofThreadSanitizerFindsARaceInAHeaderWithoutAnyStepOfTheOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the kernels once for every mutant")
	}
	cxx := sanitizer(t)
	for _, m := range mutants {
		if !m.litmus {
			continue
		}
		out, err := output(t, emulated(t, cxx, m.write(t), "-O1", "-fsanitize=thread"), "litmus", "10")
		if err == nil || !strings.Contains(out, "ThreadSanitizer: data race") {
			t.Errorf("%s: no race was found (error %v)\n%s", m.name, err, out)
		}
	}
}

// The words of Go's layout and of the header's must be the same.
func TestTheHeaderLaysOutWordsAsGoDoes(t *testing.T) {
	cc := tool(t, "cc", "gcc", "clang-22", "clang")
	program := filepath.Join(t.TempDir(), "layout")
	mustOutput(t, cc, "-Wall", "-Wextra", "-Werror", "-Iinclude", "test/layout.c", "-o", program)
	got := mustOutput(t, program)
	want := map[string]int{
		"version":        kernels.ABIVersion,
		"gate":           kernels.GateRow,
		"gate.ready":     kernels.GateReady,
		"gate.arrival":   kernels.GateArrival,
		"gate.writers":   kernels.GateWriters,
		"fault":          kernels.FaultRow,
		"fault.foreign":  kernels.FaultForeign,
		"fault.last":     kernels.FaultLast,
		"fault.extra":    kernels.FaultExtra,
		"handle.version": 8 * kernels.HandleVersion,
		"handle.chunks":  8 * kernels.HandleChunks,
		"handle.rank":    8 * kernels.HandleRank,
		"handle.round":   8 * kernels.HandleRound,
		"handle.gates":   8 * kernels.HandleGates,
		"handle.world":   8 * kernels.HandleWorld,
		"handle.first":   8 * kernels.HandleFirst,
		"handle.own":     8 * kernels.HandleOwn,
		"handle.tables":  8 * kernels.HandleTables,
		"handle.faults":  8 * kernels.HandleFaults,
		"handle.trace":   8 * kernels.HandleTrace,
		"handle":         8 * kernels.HandleChunkWords,
		"chunk.writers":  0,
		"chunk.owner":    8,
		"chunk":          8 * (kernels.HandleWords(2) - kernels.HandleWords(1)),
	}
	left := maps.Clone(want)
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		name, text, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(text)
		if at, ok := want[name]; err != nil || !ok || at != n {
			t.Errorf("%s is %s in the header, %d in Go", name, text, at)
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("the header's program does not print %v", slices.Sorted(maps.Keys(left)))
	}

	fields := regexp.MustCompile(`(?m)^    sluice_u64 (\w+)`)
	header, err := os.ReadFile("include/sluice.h")
	if err != nil {
		t.Fatal(err)
	}
	// zeros are fields too, of two structs, and not compared
	if n := len(fields.FindAllString(string(header), -1)); n != len(want)-5+2 {
		t.Errorf("the header has %d fields, the test compares %d", n, len(want)-5)
	}
}
