package plan

import "math"

// maxRound is the last round: engines compare 32 bits of a gate.
const maxRound = math.MaxUint32

// machine is the life of one plan on all its ranks: which call is allowed, and
// what state it leads to. It does no I/O; its caller holds a lock, does what it
// says, and reports what happened.
type machine struct {
	name     string
	round    uint64 // the round that is prepared, running or done
	prepared uint64 // the last round of which a queue may hold packets
	parts    []part
}

// part is one rank's side.
type part struct {
	state State
	cause error // why it is FAILED, or was before Close
	came  bool  // to Close, or Close was done for it
}

// newMachine is a plan that is about to be prepared for round first.
func newMachine(name string, ranks int, first uint64) *machine {
	return &machine{name: name, round: first - 1, parts: make([]part, ranks)}
}

// expect says whether op is allowed, which it is in one state only.
func (m *machine) expect(rank int, op string, want State) error {
	p := &m.parts[rank]
	if p.state != want {
		return &StateError{Op: op, Plan: m.name, Rank: rank, State: p.state, Want: want, Err: p.cause}
	}
	return nil
}

// start is Start, once the queues let it.
func (m *machine) start(rank int) { m.parts[rank].state = Started }

// waited is the end of a Wait.
func (m *machine) waited(rank int, err error) {
	if err != nil {
		m.fail(rank, err)
		return
	}
	if p := &m.parts[rank]; p.state == Started {
		p.state = Done
	}
}

// fail makes a rank's part FAILED, unless it is closing already.
func (m *machine) fail(rank int, err error) {
	if p := &m.parts[rank]; p.state < Closing && p.state != Failed {
		p.state, p.cause = Failed, err
	}
}

// mayAdvance says whether a rank may bring the plan to its next round.
func (m *machine) mayAdvance(rank int) error {
	if err := m.expect(rank, "NextRound", Done); err != nil {
		return err
	}
	if m.round == maxRound {
		return &RoundsError{Plan: m.name}
	}
	return nil
}

// advance is a preparation that succeeded: every rank has the next round.
func (m *machine) advance() {
	m.round++
	m.prepared = m.round
	for i := range m.parts {
		m.parts[i].state = Prepared
	}
}

// tore is a preparation that failed among the doorbells: queues may hold
// packets of the round that nobody will start.
func (m *machine) tore(err error) {
	m.prepared = m.round + 1
	for i := range m.parts {
		m.fail(i, err)
	}
}

// refused is a preparation that failed before anything was rung, as rank
// learns of it. It stays as it was, unless a peer is FAILED.
func (m *machine) refused(rank int) {
	for r := range m.parts { // the peer may have gone on to Close by now
		if cause := m.parts[r].cause; cause != nil && r != rank {
			m.fail(rank, &PeerError{Plan: m.name, Peer: r, Err: cause})
			return
		}
	}
}

// close brings rank to Close. first is false if it has been there before; open
// is the round that its gates must be opened with so that no engine waits for
// it, or 0.
func (m *machine) close(rank int) (first bool, open uint64) {
	p := &m.parts[rank]
	if p.came {
		return false, 0
	}
	p.came = true
	if p.state != Done { // a round that is done has its gates open
		open = m.prepared
	}
	p.state = Closing
	return true, open
}

// drained is the end: no queue holds packets of the plan and no kernel runs
// with its handle.
func (m *machine) drained() {
	for i := range m.parts {
		m.parts[i].state = Closed
	}
}
