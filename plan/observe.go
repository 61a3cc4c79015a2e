package plan

import (
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/histogram"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// Observation is what a world's plans are doing, and what they have done.
type Observation struct {
	Plans []Snapshot
	Ranks []Totals
	// Refused counts the calls of New and NextRound that failed, on every rank,
	// by kind; Refusals has the kinds.
	Refused map[string]uint64
	// Preparation has the times that putting a round on every queue took, once
	// all ranks had come; Wait has those of Waits on all ranks.
	Preparation, Wait histogram.Snapshot
}

// Totals are what one rank has done in all plans of its world so far.
type Totals struct {
	Rounds     uint64 // delivered
	Marks      uint64 // of its chunks
	ExtraMarks uint64 // beyond a chunk's writers, or of chunks that are not its own
	Timeouts   uint64 // Waits that ended with their context
}

// Snapshot is a plan at one moment.
type Snapshot struct {
	Plan   string
	Round  uint64 // that is prepared, running or done
	Ranks  []Part
	Chunks []Chunk // of all ranks
	// Short is what keeps a round that a rank has started from being done, as a
	// *TimeoutError would say it; More is how many chunks it leaves out.
	Short []Short
	More  int
}

// Part is one rank's part of a plan.
type Part struct {
	State State
	Err   error         // why it is FAILED
	Since time.Duration // since Start, in a round that was started
	Own   int           // chunks that the rank sends
	// Marked and Delivered are how many of these are marked ready, and have
	// arrived at every peer.
	Marked, Delivered int
}

// Chunk is one chunk of the round.
type Chunk struct {
	Owner          int
	Marks, Writers uint64     // in the round; it is marked ready when they are equal
	At             []Progress // at each rank; at its owner only Waiting or Marked
}

// Progress is how far a chunk has come on its way to a rank.
type Progress uint8

const (
	Waiting Progress = iota // for marks
	Marked                  // ready, and behind something else on the queue
	Sent                    // the copy engine is at it
	Arrived
)

// Observe looks at the world's plans. It reads what exists anyway, and may be
// called at any time, also for a world that is closed.
func Observe(w *rank.World) Observation {
	tally := w.Tally()
	o := Observation{Ranks: make([]Totals, w.Size()), Refused: tally.Refused(), Preparation: tally.Preparation.Snapshot()}
	// Under the lock no plan moves its marks into the tally, so none is missed
	// and none counted twice.
	tally.Locked(func() {
		for i := range tally.Ranks {
			r := &tally.Ranks[i]
			o.Ranks[i] = Totals{Rounds: r.Rounds.Load(), Marks: r.Marks, ExtraMarks: r.Extra, Timeouts: r.Timeouts.Load()}
			wait := r.Wait.Snapshot()
			o.Wait.Add(&wait)
		}
		for _, t := range w.Tenants() {
			if s, ok := t.(*shared); ok && !s.retired {
				s.observe(&o)
			}
		}
	})
	return o
}

// retire moves the plan's marks into the world's tally, before its gates go.
func (s *shared) retire() {
	tally := s.world.Tally()
	tally.Locked(func() {
		s.retired = true
		if !s.isPrepared() {
			return
		}
		tables, err := s.look()
		if err != nil {
			return
		}
		for i, p := range s.parts {
			marks, extra := p.marks(&tables[i])
			tally.Ranks[i].Marks += marks
			tally.Ranks[i].Extra += extra
		}
	})
}

// isPrepared says whether the plan has come so far that its parts and gates
// are there to be looked at.
func (s *shared) isPrepared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.prepared > 0
}

// look reads the tables of all ranks.
func (s *shared) look() ([]table, error) {
	tables := make([]table, len(s.tables))
	for r, t := range s.tables {
		tables[r] = t.viewed()
		if err := tables[r].look(); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// marks counts the marks of the rank's chunks over all rounds, and those that
// should not have been.
func (p *Plan) marks(t *table) (marks, extra uint64) {
	for i, c := range p.own {
		marks += t.load(p.first+i, kernels.GateWriters) - (p.shared.first-1)*uint64(c.Writers)
	}
	return marks, t.fault(kernels.FaultForeign) + t.fault(kernels.FaultExtra)
}

// observe adds the plan to what is seen of its world.
func (s *shared) observe(o *Observation) {
	if !s.isPrepared() || s.block.Hold() != nil {
		return
	}
	defer s.block.Release()
	snap := Snapshot{Plan: s.name, Chunks: make([]Chunk, len(s.chunks))}
	running := s.states(&snap)
	tables, err := s.look()
	if err != nil {
		return // a device that is lost has told the plan's ranks
	}
	for i, p := range s.parts {
		marks, extra := p.marks(&tables[i])
		o.Ranks[i].Marks += marks
		o.Ranks[i].ExtraMarks += extra
		p.progress(&snap, tables)
	}
	if running {
		snap.Short, snap.More = s.short(nil, tables, snap.Round, maxShort)
	}
	o.Plans = append(o.Plans, snap)
}

// states fills in what the machine knows, and reports whether some rank is in
// the middle of the round.
func (s *shared) states(snap *Snapshot) (running bool) {
	now := hip.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Round = s.machine.round
	for i, p := range s.parts {
		m := &s.machine.parts[i]
		part := Part{State: m.state, Err: m.cause, Own: len(p.own)}
		if m.state == Started || m.state == Failed {
			part.Since = time.Duration(now - p.started.Load())
			running = true
		}
		snap.Ranks = append(snap.Ranks, part)
	}
	return running
}

// progress fills in the rank's chunks from the gates.
func (p *Plan) progress(snap *Snapshot, tables []table) {
	me := p.rank.ID()
	part := &snap.Ranks[me]
	held := make([]bool, len(tables)) // on the queue to a peer something before the chunk is not through
	for peer := range held {
		held[peer] = p.isBehind(peer)
	}
	for i, c := range p.own {
		id, writers := p.first+i, uint64(c.Writers)
		ch := Chunk{Owner: me, Writers: writers, At: make([]Progress, len(tables))}
		ch.Marks = tables[me].load(id, kernels.GateWriters) - (snap.Round-1)*writers
		ready := reached(tables[me].load(id, kernels.GateReady), snap.Round)
		delivered := ready
		if ready {
			part.Marked++
			ch.At[me] = Marked
		}
		for peer := range ch.At {
			if peer == me {
				continue
			}
			switch {
			case reached(tables[peer].load(id, kernels.GateArrival), snap.Round):
				ch.At[peer] = Arrived
				continue
			case ready && !held[peer]:
				ch.At[peer] = Sent
			case ready:
				ch.At[peer] = Marked
			}
			held[peer], delivered = true, false
		}
		if delivered {
			part.Delivered++
		}
		snap.Chunks[id] = ch
	}
}

// isBehind says whether the rank's queue to a peer is at another plan.
func (p *Plan) isBehind(peer int) bool {
	q := p.rank.Queue(peer)
	if q == nil || len(p.own) == 0 {
		return false
	}
	_, waits := q.Behind(&p.owner)
	return waits
}
