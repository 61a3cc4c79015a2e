package proof

// order is what holds where an instruction starts, on every path to it.
type order struct {
	data    progress // of the CTA's stores towards memory
	added   bool     // on some path: a mark was counted since
	pending bool     // on some path: its result is outstanding
	told    telling
	read    reading
}

// telling is how far a mark has come that a wave counts in a region that the
// others skip.
type telling int

const (
	unmarked  telling = iota // on some path no wave has counted one since the last store
	counting                 // the count is outstanding
	counted                  // it is back: who opens the gate for it is behind it
	elsewhere                // this wave skips the region, and opens nothing
)

// progress is how far all stores so far are on their way to memory.
type progress int

const (
	stored      progress = iota // some may be outstanding
	settled                     // this wave's have left
	gathered                    // the whole CTA's have left
	writingBack                 // the L2 is being written back
	inMemory                    // everybody can see them
)

func (p progress) lacks() string {
	return [...]string{
		"a store may be outstanding that no wait or barrier has followed",
		"no barrier of the CTA has followed the wait for stores",
		"the L2 has not been written back since the barrier",
		"the write-back is not waited for",
		"",
	}[p]
}

// reading is what a look at a gate still needs before data may be read; the
// worse the higher.
type reading int

const (
	clean       reading = iota
	halfInvalid         // the L2 is invalidated, the L1 is not
	looked              // the value is here
	looking             // the load is outstanding
)

func (o order) meet(p order) order {
	return order{
		data:    min(o.data, p.data),
		added:   o.added || p.added,
		pending: o.pending || p.pending,
		told:    min(o.told, p.told),
		read:    max(o.read, p.read),
	}
}

// rules are one instruction set's.
type rules interface {
	// step is what holds after the instruction, and what rule it breaks.
	step(o order, i instr) (after order, broken string)
	// count adds to the report what the instruction does where o holds.
	count(r *Report, o order, i instr)
	// skips reports whether the branch is taken by waves that have no part in
	// the region behind it.
	skips(i instr) bool
}

// check follows every path through the code until nothing changes and returns
// what the kernel does, or the first *Violation in the text's order.
func check(c Code, by rules) (Report, error) {
	at := make([]*order, len(c.instrs))
	work := []int{0}
	at[0] = &order{data: stored}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		after, _ := by.step(*at[i], c.instrs[i])
		for _, next := range c.next(i) {
			met := after
			if next != i+1 && by.skips(c.instrs[i]) {
				met.told = elsewhere
			}
			if at[next] != nil {
				met = met.meet(*at[next])
				if met == *at[next] {
					continue
				}
			}
			at[next] = &met
			work = append(work, next)
		}
	}
	var r Report
	for i, in := range c.instrs {
		if at[i] == nil {
			continue // no path leads here
		}
		if _, broken := by.step(*at[i], in); broken != "" {
			return r, &Violation{c.Kernel, c.Arch, in.line, in.op + " " + in.operands, broken}
		}
		by.count(&r, *at[i], in)
	}
	return r, nil
}

// next are the instructions that may follow instruction i.
func (c Code) next(i int) []int {
	if c.instrs[i].falls && i+1 < len(c.instrs) {
		return append([]int{i + 1}, c.instrs[i].targets...)
	}
	return c.instrs[i].targets
}
