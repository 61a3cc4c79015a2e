package kernels

import (
	"fmt"
	"slices"
	"strings"
)

// description is what python/build.py writes of a kernel.
type description struct {
	Name      string         `json:"name"`
	Entry     string         `json:"entry"` // its name in the module
	Arch      string         `json:"arch"`
	Language  string         `json:"language"`
	Compiler  string         `json:"compiler"`
	Warps     int            `json:"warps"`
	WarpSize  int            `json:"warp_size"`
	Shared    int            `json:"shared"` // bytes
	Scratch   scratch        `json:"scratch"`
	Arguments []argument     `json:"arguments"`
	Hidden    []string       `json:"hidden"` // arguments that Triton adds behind them
	Constants map[string]int `json:"constants"`
	Order     *Order         `json:"order"`
	Binary    binaryFile     `json:"binary"`
}

// scratch is memory that each program of a launch has to itself.
type scratch struct {
	Bytes int64 `json:"bytes"`
	Align int64 `json:"align"`
}

// argument is a parameter as its author knows it.
type argument struct {
	Name     string `json:"name"`
	Type     string `json:"type"`     // as Triton writes it: *bf16, i32, ...
	Multiple int64  `json:"multiple"` // of which it was compiled to be one
}

func (a argument) pointer() bool { return strings.HasPrefix(a.Type, "*") }

type binaryFile struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

const (
	globalScratch  = "global_scratch"
	profileScratch = "profile_scratch"
)

// scalarTypes are the types of arguments that are no pointers.
var scalarTypes = []string{"i32", "u32", "i64", "u64", "fp32", "fp64"}

func (d *description) check() error {
	switch {
	case d.Name == "" || d.Entry == "" || d.Arch == "" || d.Binary.File == "":
		return fmt.Errorf("it has the name %q, entry %q, architecture %q and binary %q; none may be empty", d.Name, d.Entry, d.Arch, d.Binary.File)
	case d.Warps < 1 || d.WarpSize < 1 || d.Shared < 0:
		return fmt.Errorf("%d warps of %d threads with %d bytes of shared memory cannot be", d.Warps, d.WarpSize, d.Shared)
	case d.Scratch.Bytes < 0:
		return fmt.Errorf("%d bytes of scratch memory cannot be", d.Scratch.Bytes)
	case d.Scratch.Bytes > 0 && !slices.Contains(d.Hidden, globalScratch):
		return fmt.Errorf("it needs %d bytes of scratch memory, and no hidden argument is %s", d.Scratch.Bytes, globalScratch)
	}
	for _, h := range d.Hidden {
		if h != globalScratch && h != profileScratch {
			return fmt.Errorf("the hidden argument %q is not known; they are %s and %s", h, globalScratch, profileScratch)
		}
	}
	for _, a := range d.Arguments {
		if !a.pointer() && !slices.Contains(scalarTypes, a.Type) {
			return fmt.Errorf("argument %s has the type %q; it is a pointer or one of %v", a.Name, a.Type, scalarTypes)
		}
	}
	return nil
}
