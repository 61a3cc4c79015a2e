package plan

import (
	"errors"
	"slices"
)

// What a model expects of a call, besides nil and injected errors.
var (
	errOrder    = errors.New("an OrderError")
	errState    = errors.New("a StateError")
	errTimeout  = errors.New("a TimeoutError")
	errMarks    = errors.New("a MarksError")
	errExcluded = errors.New("an ExclusionError")
	errFull     = errors.New("a CapacityError")
)

// model is what the ranks' plans and queues should be like. Every rank keeps
// one of all ranks, and changes it by the operations that all ranks do.
type model struct {
	ranks int
	limit int64     // of a queue
	m     []life    // by the slot of a plan
	queue [][]entry // of each rank, to each of its peers alike
}

// life is a plan's.
type life struct {
	drawnPlan
	name  string
	round uint64
	at    []side
}

// side is one rank's part of a plan.
type side struct {
	state    State
	failed   bool
	produced bool
	extra    bool // marked once too often
	ready    bool // every chunk marked
}

// entry is what a rank has prepared on its queues and engines have not passed.
type entry struct {
	plan    int
	name    string
	cost    int64
	started bool
	open    bool // every gate is
	closed  bool // its plan is CLOSING, and the slot is another's
}

func newModel(s *scenario) *model {
	m := &model{ranks: s.ranks, limit: modelRing() / 2, queue: make([][]entry, s.ranks)}
	for _, p := range s.plans {
		m.m = append(m.m, life{drawnPlan: p})
	}
	return m
}

// cost is the packets of a plan's chain: a poll, a copy and a signal a chunk.
func (l *life) cost() int64 {
	copy := 28
	if l.gap > 0 && l.rows > 1 {
		copy = 80
	}
	return int64(l.chunks * (24 + copy + 32))
}

// sends says whether a rank has chunks for peers.
func (m *model) sends(i, r int) bool { return m.ranks > 1 && !slices.Contains(m.m[i].silent, r) }

func (m *model) entry(i, r int) *entry {
	for k := range m.queue[r] {
		if e := &m.queue[r][k]; e.plan == i && !e.closed {
			return e
		}
	}
	return nil
}

// position is where a plan is in a rank's queue, or -1.
func (m *model) position(name string, r int) int {
	return slices.IndexFunc(m.queue[r], func(e entry) bool { return e.name == name })
}

// full says whether a round of plan i does not fit.
func (m *model) full(i int) bool {
	for r := range m.ranks {
		held := int64(0)
		for _, e := range m.queue[r] {
			held += e.cost
		}
		if m.sends(i, r) && held+m.m[i].cost() > m.limit {
			return true
		}
	}
	return false
}

// made is a New that worked.
func (m *model) made(i int, name string) {
	m.m[i].name, m.m[i].round, m.m[i].at = name, 0, make([]side, m.ranks)
	m.prepare(i)
}

func (m *model) prepare(i int) {
	l := &m.m[i]
	l.round++
	for r := range l.at {
		l.at[r] = side{state: Prepared}
		if m.sends(i, r) {
			m.queue[r] = append(m.queue[r], entry{plan: i, name: l.name, cost: l.cost()})
		}
	}
}

// start is Start on every rank; it returns what rank me gets.
func (m *model) start(i, me int) (mine error) {
	for r := range m.ranks {
		err := m.startOn(i, r)
		if err == nil {
			m.m[i].at[r].state = Started
			if e := m.entry(i, r); e != nil {
				e.started = true
			}
		}
		if r == me {
			mine = err
		}
	}
	return mine
}

func (m *model) startOn(i, r int) error {
	if m.m[i].at[r].state != Prepared {
		return errState
	}
	mine := m.entry(i, r)
	for k := range m.queue[r] {
		e := &m.queue[r][k]
		if e == mine || mine == nil {
			return nil
		}
		if !e.started {
			return errOrder
		}
	}
	return nil
}

// produces says whether a rank may mark its chunks now.
func (m *model) produces(i, r int) bool {
	s := &m.m[i].at[r]
	return s.state == Started && !s.produced
}

// produced is a producer on every rank that may; on bad it marks wrongly.
func (m *model) produced(i, bad int, extra bool) {
	for r := range m.ranks {
		if !m.produces(i, r) {
			continue
		}
		s := &m.m[i].at[r]
		silent := slices.Contains(m.m[i].silent, r)
		s.produced = true
		s.extra = r == bad && extra && !silent
		s.ready = silent || r != bad || extra
		if e := m.entry(i, r); e != nil && s.ready {
			e.open = true
		}
	}
	m.pass()
}

// pass is what engines do: they pass what is open, in order.
func (m *model) pass() {
	for r := range m.queue {
		for len(m.queue[r]) > 0 && m.queue[r][0].open {
			m.queue[r] = m.queue[r][1:]
		}
	}
}

// wait is Wait on every rank.
func (m *model) wait(i, me int) (mine error) {
	delivered := true
	for r := range m.ranks {
		delivered = delivered && m.entry(i, r) == nil
	}
	if m.ranks == 1 {
		delivered = m.m[i].at[0].ready
	}
	for r := range m.ranks {
		s := &m.m[i].at[r]
		err := error(nil)
		switch {
		case s.state != Started:
			err = errState
		case s.extra:
			err = errMarks
		case !delivered:
			err = errTimeout
		}
		if s.state == Started {
			s.state, s.failed = Done, err != nil
			if err != nil {
				s.state = Failed
			}
		}
		if r == me {
			mine = err
		}
	}
	return mine
}

// next is NextRound on every rank; a fault would stop it before the doorbells.
func (m *model) next(i int, fault bool) error {
	l := &m.m[i]
	notDone, failed := false, false
	for r := range l.at {
		notDone = notDone || l.at[r].state != Done
		failed = failed || l.at[r].failed
	}
	switch {
	case notDone && failed:
		for r := range l.at {
			l.at[r].state, l.at[r].failed = Failed, true
		}
		return errState
	case notDone:
		return errState
	case fault:
		return errInjected
	case m.full(i):
		return errFull
	}
	m.prepare(i)
	return nil
}

// close is Close on every rank; it returns the state that the plan is then in.
func (m *model) close(i int) State {
	for r := range m.ranks {
		if e := m.entry(i, r); e != nil {
			e.started, e.open = true, true
		}
	}
	m.pass()
	state := Closed
	for r := range m.ranks {
		if e := m.entry(i, r); e != nil {
			e.closed, state = true, Closing
		}
	}
	return state
}
