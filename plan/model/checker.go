package model

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed plan.pml
var source []byte

// Search is what a checker looks for.
type Search string

const (
	// Safety looks for violated properties, and for states in which nothing can
	// happen any more though something still must.
	Safety Search = "-O2 -DSAFETY"
	// Shortest is Safety for small sizes: it is compiled sooner, and finds a
	// shortest counterexample.
	Shortest Search = "-O0 -DSAFETY -DBFS"
	// Cycles looks for runs that do not end.
	Cycles Search = "-O1 -DNP"
	// narrated is Safety that prints every event it meets.
	narrated Search = "-O0 -DSAFETY -DPRINTF"
)

// Checker is a program that explores the model.
type Checker struct {
	dir     string
	defines []string
	search  Search
}

// Result is what an exhaustive search has found.
type Result struct {
	States int // explored
	// Violated is the property that does not hold, or what spin says of the
	// run; empty if nothing was found.
	Violated string
	// Events are the transitions of the counterexample, by the names in plan.pml.
	Events []string
}

// ToolError is a tool that is missing or that failed.
type ToolError struct {
	Tool   string
	Output string
	Err    error
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("model: %s: %v; install spin and a C compiler if there is none\n%s", e.Tool, e.Err, e.Output)
}

func (e *ToolError) Unwrap() error { return e.Err }

// IncompleteError is a search that ended before it had seen every state.
type IncompleteError struct{ Output string }

func (e *IncompleteError) Error() string {
	return "model: the search is not exhaustive: give it more memory or depth, or a smaller size\n" + e.Output
}

// Compile builds a checker in the empty folder dir. A mutation is a name that
// plan.pml knows, or "" for the true protocol. The error is a *ToolError.
func Compile(ctx context.Context, dir string, size Size, mutation string, search Search) (*Checker, error) {
	c := &Checker{dir: dir, defines: size.defines(mutation), search: search}
	if err := os.WriteFile(filepath.Join(dir, "plan.pml"), source, 0o644); err != nil {
		return nil, err
	}
	if _, err := c.tool(ctx, "spin", append(append([]string{"-a"}, c.defines...), "plan.pml")...); err != nil {
		return nil, err
	}
	flags := append(strings.Fields(string(search)), "-w", "-DVECTORSZ=2048", "-o", "pan", "pan.c")
	_, err := c.tool(ctx, "cc", flags...)
	return c, err
}

// Run explores every state, or stops at the first counterexample. The error is
// a *ToolError or an *IncompleteError.
func (c *Checker) Run(ctx context.Context) (Result, error) {
	flags := []string{"-m100000", "-w24"}
	if c.search == Cycles {
		flags = append(flags, "-l")
	}
	out, err := c.tool(ctx, "./pan", flags...)
	if err != nil {
		return Result{}, err
	}
	return c.read(ctx, out)
}

var (
	statesLine = regexp.MustCompile(`(?m)^\s*(\d+) states, stored`)
	errorsLine = regexp.MustCompile(`errors: (\d+)`)
	foundLine  = regexp.MustCompile(`(?m)^pan:\d+: (.*?)(?: \(at depth \d+\))?$`)
)

func (c *Checker) read(ctx context.Context, out string) (r Result, err error) {
	states, errors := statesLine.FindStringSubmatch(out), errorsLine.FindStringSubmatch(out)
	if states == nil || errors == nil || strings.Contains(out, "max search depth too small") {
		return r, &IncompleteError{Output: out}
	}
	r.States, _ = strconv.Atoi(states[1])
	if errors[1] != "0" {
		if found := foundLine.FindStringSubmatch(out); found != nil {
			r.Violated = found[1]
		}
		return r, c.replay(ctx, &r)
	}
	if strings.Contains(out, "Search not completed") {
		return r, &IncompleteError{Output: out}
	}
	return r, nil
}

// replay follows the trail of a counterexample.
func (c *Checker) replay(ctx context.Context, r *Result) error {
	out, err := c.tool(ctx, "spin", append(append([]string{"-T", "-t"}, c.defines...), "plan.pml")...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rule, found := strings.CutPrefix(line, "violated: "); found {
			r.Violated = rule
			break
		}
		if event.MatchString(line) {
			r.Events = append(r.Events, line)
		}
	}
	return nil
}

var event = regexp.MustCompile(`^(?:rank \d+|queue \d+>\d+|world): ([A-Z]\w+)`)

// tool runs a program in the checker's folder and returns what it prints.
func (c *Checker) tool(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", &ToolError{Tool: name, Output: tail(out.String()), Err: err}
	}
	return out.String(), nil
}

// tail is the end of a long output.
func tail(s string) string {
	const most = 4000 // bytes
	return s[max(0, len(s)-most):]
}
