package kernels

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// TritonKernel is a kernel that Triton or Gluon compiled.
type TritonKernel struct {
	*Kernel
	d *description
}

func newTritonKernel(k *Kernel, d *description) *TritonKernel {
	k.Name = d.Name
	k.Args = make([]string, len(d.Arguments))
	for i, a := range d.Arguments {
		k.Args[i] = a.Name
	}
	return &TritonKernel{Kernel: k, d: d}
}

// Language is "triton" or "gluon".
func (k *TritonKernel) Language() string { return k.d.Language }

// Compiler is what compiled it, with its version.
func (k *TritonKernel) Compiler() string { return k.d.Compiler }

// Threads is how many threads a program has.
func (k *TritonKernel) Threads() int { return k.d.Warps * k.d.WarpSize }

// Constants are the values that it was compiled for, such as the shape of its
// tiles.
func (k *TritonKernel) Constants() map[string]int { return maps.Clone(k.d.Constants) }

// Order is the kernel's own function from steps to tiles, nil if it was built
// without one. Schedules take its Tile.
func (k *TritonKernel) Order() *Order { return k.d.Order }

// ScratchBytes is how much scratch memory a launch of so many programs needs, 0
// if none: programs share it out among themselves, and no other launch may use
// it at the same time.
func (k *TritonKernel) ScratchBytes(programs int) int64 { return int64(programs) * k.d.Scratch.Bytes }

// Launch is the grid and the arguments of a launch of so many programs, for
// rank.Launch: the arguments that the kernel's author knows, with Go's integers
// in the sizes that Triton wants, and behind them those that Triton adds.
// scratch may be nil if ScratchBytes is 0. The error is an *ArgumentError.
func (k *TritonKernel) Launch(programs int, scratch *heap.Tensor, args ...any) (hip.Grid, []any, error) {
	names := strings.Join(k.Kernel.Args, ", ")
	if len(args) != len(k.d.Arguments) {
		return hip.Grid{}, nil, k.wrong("list", "there are %d, and it takes %d (%s)", len(args), len(k.d.Arguments), names)
	}
	out := make([]any, 0, len(args)+len(k.d.Hidden))
	for i, a := range k.d.Arguments {
		v, err := k.argument(a, args[i])
		if err != nil {
			return hip.Grid{}, nil, err
		}
		out = append(out, v)
	}
	for _, h := range k.d.Hidden {
		if h != globalScratch || k.d.Scratch.Bytes == 0 {
			out = append(out, uint64(0))
			continue
		}
		need := k.ScratchBytes(programs)
		switch {
		case scratch == nil:
			return hip.Grid{}, nil, k.wrong("scratch", "it is nil, and %d programs need %d bytes", programs, need)
		case scratch.Size() < need:
			return hip.Grid{}, nil, k.wrong("scratch", "it has %d bytes, and %d programs need %d", scratch.Size(), programs, need)
		case k.d.Scratch.Align > 1 && scratch.Addr()%uint64(k.d.Scratch.Align) != 0:
			return hip.Grid{}, nil, k.wrong("scratch", "its address is no multiple of %d", k.d.Scratch.Align)
		}
		out = append(out, scratch)
	}
	return hip.Grid{Blocks: programs, Threads: k.Threads()}, out, nil
}

// argument is a value in the size that the kernel takes it.
func (k *TritonKernel) argument(a argument, v any) (any, error) {
	if t, ok := v.(*heap.Tensor); ok && a.pointer() {
		if a.Multiple > 1 && t.Err() == nil && t.Addr()%uint64(a.Multiple) != 0 {
			return nil, k.wrong(a.Name, "its address is no multiple of %d bytes, for which the kernel was compiled", a.Multiple)
		}
		return v, nil
	}
	n, isInt := v.(int)
	switch {
	case a.pointer() && !isInt:
		return v, nil // a handle, or an address
	case a.pointer():
		return nil, k.wrong(a.Name, "it is an int, and the kernel takes a pointer; pass a tensor, a handle or a uint64")
	case !isInt:
		return v, nil // in the size that the caller chose
	case a.Multiple > 1 && int64(n)%a.Multiple != 0:
		return nil, k.wrong(a.Name, "it is %d, and the kernel was compiled for multiples of %d", n, a.Multiple)
	}
	switch a.Type {
	case "i32":
		if n < math.MinInt32 || n > math.MaxInt32 {
			return nil, k.wrong(a.Name, "it is %d, which 32 bits do not hold", n)
		}
		return int32(n), nil
	case "u32":
		if n < 0 || n > math.MaxUint32 {
			return nil, k.wrong(a.Name, "it is %d, which 32 bits without a sign do not hold", n)
		}
		return uint32(n), nil
	case "i64", "u64":
		return n, nil
	}
	return nil, k.wrong(a.Name, "it is an int, and the kernel takes %s", a.Type)
}

func (k *TritonKernel) wrong(name, format string, args ...any) error {
	return &ArgumentError{Kernel: k.Name, Argument: name, Why: fmt.Sprintf(format, args...)}
}
