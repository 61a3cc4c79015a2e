package proof

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	amdLabel = regexp.MustCompile(`^([0-9a-f]+) <([^>]+)>:$`)
	amdInstr = regexp.MustCompile(`^\t(\S+)\s*(.*?)\s*// ?([0-9A-F]+):[^<]*(?:<([^+>]+)(?:\+0x([0-9a-f]+))?>)?`)
)

// ParseAMD reads what llvm-objdump -d prints for a code object. Lines of
// instructions that neither touch memory nor wait nor branch may be missing.
func ParseAMD(arch, text string) ([]Code, error) {
	var all []Code
	var body *amdBody // of the kernel being read
	finish := func() error {
		if body == nil {
			return nil
		}
		if len(body.instrs) == 0 {
			return &ParseError{arch, body.line, "kernel " + body.kernel + " has no instructions"}
		}
		all = append(all, Code{body.kernel, arch, body.instrs})
		return body.link(arch)
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if m := amdLabel.FindStringSubmatch(line); m != nil {
			if err := finish(); err != nil {
				return nil, err
			}
			base, _ := strconv.ParseUint(m[1], 16, 64)
			body = &amdBody{kernel: m[2], line: n, base: base, jumps: map[int]uint64{}}
		} else if m := amdInstr.FindStringSubmatch(line); m != nil && body != nil {
			if err := body.add(arch, n, m); err != nil {
				return nil, err
			}
		}
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return all, lines.Err()
}

// amdBody is a kernel as far as it was read.
type amdBody struct {
	kernel string
	line   int
	base   uint64 // its address
	instrs []instr
	addrs  []uint64       // by instruction
	jumps  map[int]uint64 // by instruction, the address
}

func (b *amdBody) add(arch string, line int, m []string) error {
	addr, err := strconv.ParseUint(m[3], 16, 64)
	if err != nil {
		return &ParseError{arch, line, err.Error()}
	}
	in := instr{line: line, op: m[1], operands: m[2], falls: !amdEnds(m[1])}
	if strings.HasPrefix(in.op, "s_branch") || strings.HasPrefix(in.op, "s_cbranch") {
		if m[4] != b.kernel {
			return &ParseError{arch, line, fmt.Sprintf("the branch leads to %q, not into its kernel %s", m[4], b.kernel)}
		}
		off, _ := strconv.ParseUint(m[5], 16, 64) // none means 0
		b.jumps[len(b.instrs)] = b.base + off
	}
	b.instrs = append(b.instrs, in)
	b.addrs = append(b.addrs, addr)
	return nil
}

// link finds where branches lead: to the first instruction at the address or,
// where that was left out, after it.
func (b *amdBody) link(arch string) error {
	for i, to := range b.jumps {
		j, _ := slices.BinarySearch(b.addrs, to)
		if j == len(b.addrs) {
			return &ParseError{arch, b.instrs[i].line, "the branch leads out of its kernel"}
		}
		b.instrs[i].targets = []int{j}
	}
	return nil
}

func amdEnds(op string) bool { return op == "s_endpgm" || op == "s_branch" || op == "s_trap" }

// CheckAMD follows a kernel for gfx90a, gfx942 or gfx950.
func CheckAMD(c Code) (Report, error) {
	return check(c, amdRules{scoped: c.Arch != "gfx90a"})
}

// amdRules are gfx9's. On gfx90a nothing but its place tells a store at system
// scope from another; later ones say sc0 sc1.
type amdRules struct{ scoped bool }

// has reports whether one of the instruction's modifiers is m.
func (i instr) has(m string) bool {
	for f := range strings.FieldsSeq(i.operands) {
		if f == m {
			return true
		}
	}
	return false
}

func memory(op, what string) bool {
	return strings.HasPrefix(op, "global_"+what) || strings.HasPrefix(op, "flat_"+what) || strings.HasPrefix(op, "buffer_"+what)
}

// system reports whether the access reaches past this device's caches.
func (r amdRules) system(i instr) bool {
	if r.scoped {
		return i.has("sc0") && i.has("sc1")
	}
	return i.has("glc")
}

func (r amdRules) isMark(i instr) bool {
	returns := i.has("glc") || i.has("sc0")
	return returns && memory(i.op, "atomic_add_x2")
}

// isSignal tells a store that says that data is there. Without scopes it is
// the store that comes when data is in memory.
func (r amdRules) isSignal(o order, i instr) bool {
	if r.scoped && memory(i.op, "atomic_swap_x2") {
		// Behind a mark it opens the gate; elsewhere it leaves a note that orders
		// nothing. An atomic's sc0 asks for its result.
		return (o.told == counting || o.told == counted) && i.has("sc1")
	}
	if !memory(i.op, "store") {
		return false
	}
	if r.scoped {
		return r.system(i)
	}
	return o.data == inMemory
}

// skips is true of branches around a region for which no lane is chosen.
func (amdRules) skips(i instr) bool { return i.op == "s_cbranch_execz" }

func (r amdRules) step(o order, i instr) (order, string) {
	broken := ""
	switch {
	case i.op == "s_waitcnt" && strings.Contains(i.operands, "vmcnt(0)"):
		o.pending = false
		if o.told == counting {
			o.told = counted
		}
		switch o.data {
		case stored:
			o.data = settled
		case writingBack:
			o.data = inMemory
		}
		if o.read == looking {
			o.read = looked
		}
	case i.op == "s_barrier":
		if o.read != clean {
			broken = "the CTA goes on before the caches are invalidated"
		}
		if o.data == settled {
			o.data = gathered
		}
	case i.op == "buffer_wbl2":
		if o.data >= gathered && (!r.scoped || r.system(i)) {
			o.data = writingBack
		}
	case i.op == "buffer_inv" && r.scoped && r.system(i):
		if o.read == looked {
			o.read = clean
		}
	case i.op == "buffer_invl2" && !r.scoped:
		if o.read == looked {
			o.read = halfInvalid
		}
	case i.op == "buffer_wbinvl1_vol" && !r.scoped:
		if o.read == halfInvalid {
			o.read = clean
		}
	case r.isMark(i):
		if o.data != inMemory {
			broken = "a mark is counted early: " + o.data.lacks()
		} else if !r.system(i) {
			broken = "a mark is not counted at system scope"
		}
		o.added, o.pending, o.told = true, true, counting
	case r.isSignal(o, i):
		switch {
		case o.told == counted: // the mark's data was in memory
		case o.data != inMemory:
			broken = "a gate is opened early: " + o.data.lacks()
		case o.pending:
			broken = "a gate is opened before the mark's count is back"
		}
		o.data, o.added, o.told = stored, false, unmarked
	case memory(i.op, "store"):
		o.data, o.added, o.told = stored, false, unmarked
	case memory(i.op, "load"):
		if r.system(i) {
			o.read = looking
		} else if o.read != clean {
			broken = "data is read before the caches are invalidated"
		}
	case strings.HasPrefix(i.op, "ds_write") && o.read != clean:
		broken = "the CTA is told before the caches are invalidated"
	case i.op == "s_swappc_b64" || i.op == "s_setpc_b64":
		broken = "the order cannot be followed through a call"
	}
	return o, broken
}

func (r amdRules) count(n *Report, o order, i instr) {
	switch {
	case r.isMark(i):
		n.Marks++
	case r.isSignal(o, i) && o.added:
		n.Gates++
	case r.isSignal(o, i):
		n.Publishes++
	case i.op == "buffer_inv" && o.read == looked, i.op == "buffer_wbinvl1_vol" && o.read == halfInvalid:
		n.Acquires++
	}
}
