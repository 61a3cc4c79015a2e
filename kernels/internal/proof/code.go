package proof

import "fmt"

// Code is the machine code of one kernel.
type Code struct {
	Kernel string
	Arch   string // "gfx942", "sm_90", ...
	instrs []instr
}

// instr is one instruction: its operation, the text of its operands, and where
// it may lead.
type instr struct {
	line     int // in the text, from 1
	op       string
	operands string
	targets  []int // indexes it may branch to
	falls    bool  // whether the next one may follow
}

// Violation says where a kernel breaks the order.
type Violation struct {
	Kernel, Arch string
	Line         int    // of the text that was read; 0 if a thing is missing altogether
	Instruction  string // "" likewise
	Rule         string // what is wrong
}

func (e *Violation) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("kernel %s for %s: %s", e.Kernel, e.Arch, e.Rule)
	}
	return fmt.Sprintf("kernel %s for %s, line %d: %s: %s", e.Kernel, e.Arch, e.Line, e.Instruction, e.Rule)
}

// ParseError says why a text is no disassembly that this package reads.
type ParseError struct {
	Arch string
	Line int
	Why  string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("disassembly for %s, line %d: %s", e.Arch, e.Line, e.Why)
}

// Report is what a kernel does, counted in instructions.
type Report struct {
	Marks     int // adds to a writers counter
	Gates     int // stores that open a gate after such an add
	Publishes int // other stores that say that data is there
	Acquires  int // looks at a gate that order what is read after them
}
