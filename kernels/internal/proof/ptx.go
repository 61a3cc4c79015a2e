package proof

import (
	"bufio"
	"regexp"
	"slices"
	"strings"
)

var (
	ptxEntry = regexp.MustCompile(`^\s*(?:\.visible\s+)?\.entry\s+([A-Za-z_$][\w$]*)`)
	ptxLabel = regexp.MustCompile(`^\$?[A-Za-z_][\w$]*$`)
	ptxInstr = regexp.MustCompile(`^(?:(@!?%?\w+)\s+)?([a-z][\w.:]*)\s*((?s).*)$`)
	ptxPlace = regexp.MustCompile(`^\s*\.(loc|file)\s`)
	ptxNames = regexp.MustCompile(`\$?[A-Za-z_][\w$]*`)
)

// ParsePTX reads the entries of a PTX module.
func ParsePTX(arch, text string) ([]Code, error) {
	var all []Code
	var body *ptxBody // of the entry being read
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "//")
		if m := ptxEntry.FindStringSubmatch(line); m != nil {
			body = &ptxBody{labels: map[ptxName]int{}, tables: map[string][]string{}, jumps: map[int]ptxName{}, outer: []int{0}}
			all = append(all, Code{Kernel: m[1], Arch: arch})
		}
		if body == nil || ptxPlace.MatchString(line) || !body.read(n, line+"\n") {
			continue
		}
		if err := body.link(arch); err != nil {
			return nil, err
		}
		all[len(all)-1].instrs = body.instrs
		body = nil
	}
	for _, c := range all {
		if len(c.instrs) == 0 {
			return nil, &ParseError{arch, 0, "kernel " + c.Kernel + " has no instructions, or no end"}
		}
	}
	return all, lines.Err()
}

// ptxBody is an entry's body as far as it was read.
type ptxBody struct {
	instrs []instr
	labels map[ptxName]int     // the instruction behind a label
	tables map[string][]string // a label's .branchtargets
	jumps  map[int]ptxName     // by instruction, the label or the table

	outer         []int // by block, the one around it; the first is around all
	block         int   // that is being read
	depth, braces int   // blocks, and braces inside a statement
	statement     strings.Builder
	line          int    // where the statement began
	label         string // the last one, until something follows it
}

// ptxName is a label where a block says it: its own, or one of those around it.
type ptxName struct {
	block int
	label string
}

// find is the instruction behind a label.
func (b *ptxBody) find(n ptxName) (int, bool) {
	for {
		if to, ok := b.labels[n]; ok || n.block == 0 {
			return to, ok
		}
		n.block = b.outer[n.block]
	}
}

// read takes a line and reports whether the body ends in it.
func (b *ptxBody) read(line int, text string) (ended bool) {
	for _, ch := range text {
		s := strings.TrimSpace(b.statement.String())
		if s == "" {
			b.line = line
		}
		switch {
		case ch == '{' && (s == "" || b.depth == 0):
			b.depth++
			b.outer = append(b.outer, b.block)
			b.block = len(b.outer) - 1
			b.statement.Reset()
		case b.depth == 0: // the name and the parameters
		case ch == '}' && s == "":
			b.block = b.outer[b.block]
			if b.depth--; b.depth == 0 {
				return true
			}
		case ch == ':' && ptxLabel.MatchString(s):
			b.labels[ptxName{b.block, s}], b.label = len(b.instrs), s
			b.statement.Reset()
		case ch == ';' && b.braces == 0:
			b.add(s)
			b.statement.Reset()
		default:
			switch ch {
			case '{':
				b.braces++
			case '}':
				b.braces--
			}
			b.statement.WriteRune(ch)
		}
	}
	return false
}

func (b *ptxBody) add(statement string) {
	if list, ok := strings.CutPrefix(statement, ".branchtargets"); ok {
		b.tables[b.label] = ptxNames.FindAllString(list, -1)
		return
	}
	m := ptxInstr.FindStringSubmatch(statement)
	if m == nil {
		return // a directive
	}
	in := instr{line: b.line, op: m[2], operands: m[3], falls: true}
	switch in.parts()[0] {
	case "bra":
		b.jumps[len(b.instrs)] = ptxName{b.block, in.operands}
		in.falls = m[1] != ""
	case "brx":
		names := ptxNames.FindAllString(in.operands, -1)
		b.jumps[len(b.instrs)] = ptxName{b.block, names[len(names)-1]}
		in.falls = m[1] != ""
	case "ret", "exit", "trap":
		in.falls = m[1] != ""
	}
	b.instrs = append(b.instrs, in)
}

// link finds where branches lead.
func (b *ptxBody) link(arch string) error {
	for i, name := range b.jumps {
		labels := b.tables[name.label]
		if labels == nil {
			labels = []string{name.label}
		}
		for _, l := range labels {
			to, ok := b.find(ptxName{name.block, l})
			if !ok || to >= len(b.instrs) {
				return &ParseError{arch, b.instrs[i].line, "the branch to " + l + " leads to no instruction of its kernel"}
			}
			b.instrs[i].targets = append(b.instrs[i].targets, to)
		}
	}
	return nil
}

// CheckPTX follows a kernel in PTX.
func CheckPTX(c Code) (Report, error) { return check(c, ptxRules{}) }

// ptxRules are PTX's memory model: a barrier gathers the CTA's stores, a
// release at system scope makes them visible.
type ptxRules struct{}

// parts are an operation and its modifiers.
func (i instr) parts() []string { return strings.Split(i.op, ".") }

func (i instr) says(modifiers ...string) bool {
	parts := i.parts()
	for _, m := range modifiers {
		if !slices.Contains(parts, m) {
			return false
		}
	}
	return true
}

// private reports whether the access is to memory that nobody else sees.
func (i instr) private() bool {
	return slices.ContainsFunc(i.parts(), func(p string) bool {
		space, _, _ := strings.Cut(p, "::")
		return space == "shared" || space == "local" || space == "param" || space == "const"
	})
}

func (ptxRules) isMark(i instr) bool {
	return i.parts()[0] == "atom" && !i.private() && i.says("add") && (i.says("u64") || i.says("s64"))
}

// skips is false: a barrier of PTX leaves what it gathered gathered, in waves
// that skip a region too.
func (ptxRules) skips(instr) bool { return false }

func (ptxRules) isSignal(i instr) bool {
	return !i.private() && i.says("release", "sys") && (i.parts()[0] == "st" || i.says("exch"))
}

func (r ptxRules) step(o order, i instr) (order, string) {
	if i.private() {
		return o, ""
	}
	broken := ""
	switch op := i.parts()[0]; {
	case op == "bar" || op == "barrier":
		if o.read != clean {
			broken = "the CTA goes on before the look at a gate is acquired"
		}
		o.data = gathered
	case r.isMark(i):
		switch {
		case o.data != gathered:
			broken = "a mark is counted early: " + o.data.lacks()
		case !i.says("acq_rel"):
			broken = "a mark is no acquire and release"
		case !i.says("sys"):
			broken = "a mark is not counted at system scope"
		}
		o.added = true
	case r.isSignal(i):
		if o.data != gathered {
			broken = "a gate is opened early: " + o.data.lacks()
		}
		o.data, o.added = stored, false
	case op == "st" && !i.says("relaxed"):
		o.data, o.added = stored, false
	case op == "ld" && i.says("acquire", "sys"):
		o.read = clean
	case op == "ld" && (i.says("relaxed") || i.says("volatile")):
		o.read = looked
	case op == "ld" && o.read != clean:
		broken = "data is read before the look at a gate is acquired"
	case op == "call":
		broken = "the order cannot be followed through a call"
	}
	return o, broken
}

func (r ptxRules) count(n *Report, o order, i instr) {
	switch {
	case r.isMark(i):
		n.Marks++
	case r.isSignal(i) && o.added:
		n.Gates++
	case r.isSignal(i):
		n.Publishes++
	case i.parts()[0] == "ld" && i.says("acquire", "sys"):
		n.Acquires++
	}
}
