package kernels

import (
	"fmt"
	"strings"

	"github.com/triggeredplans/sluice/hip"
)

// Kernel is a kernel by name. The built-in ones exist on every platform under
// the same name, with the same arguments and the same effect; a kernel of a
// user's own runs on the host platform if it has a Go function.
type Kernel struct {
	Name string
	// Go is what one thread does on the host platform.
	Go func(*hip.Thread)
	// Args are the names of the arguments in order, nil if they are not
	// checked. Each is one 64-bit word.
	Args []string
	// Loaded is the kernel on the device that it was loaded onto from a module
	// of the user's own. Nil for the built-in kernels and on the host platform.
	Loaded *hip.Function
}

// Builtin returns the built-in kernels in the order of their names.
func Builtin() []*Kernel { return []*Kernel{Consumer, Fill, Script, Tiled} }

// Grid is a launch of so many CTAs, with as many threads each as suit the
// platform: one on the host.
func Grid(blocks int) hip.Grid { return hip.Grid{Blocks: blocks} }

// Waits is g for a kernel that waits for arrivals.
func Waits(g hip.Grid) hip.Grid {
	g.Waits = true
	return g
}

// builtin makes a kernel that fails unless it gets just the arguments named.
func builtin(name string, body func(*hip.Thread), args ...string) *Kernel {
	check := func(t *hip.Thread) {
		list := strings.Join(args, ", ")
		switch n := t.NArg(); {
		case n < len(args):
			t.Fail(&ArgumentError{Kernel: name, Argument: args[n], Why: fmt.Sprintf("it is missing: launched with %d of the %d arguments (%s)", n, len(args), list)})
		case n > len(args):
			t.Fail(&ArgumentError{Kernel: name, Argument: fmt.Sprint(len(args)), Why: fmt.Sprintf("there is none: launched with %d, and the %d arguments are (%s)", n, len(args), list)})
		}
	}
	return &Kernel{Name: name, Args: args, Go: func(t *hip.Thread) {
		if t.NArg() != len(args) {
			check(t)
		}
		body(t)
	}}
}
