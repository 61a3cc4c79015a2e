package plan

import (
	"fmt"
	"math"

	"github.com/triggeredplans/sluice/kernels"
)

// short lists the chunks that keep the rank's round from being done, with what
// each waits for.
func (p *Plan) short(round uint64) ([]Short, error) {
	for i := range p.tables {
		if err := p.tables[i].look(); err != nil {
			return nil, err
		}
	}
	short, _ := p.shared.short(p, p.tables, round, math.MaxInt)
	return short, nil
}

// short is what rank p waits for in a round, or all ranks together if p is
// nil, as tables have it: up to limit chunks, and how many more there are.
func (s *shared) short(p *Plan, tables []table, round uint64, limit int) (short []Short, more int) {
	add := func(c int, owner *Plan, peer int, why func() string) {
		if len(short) == limit {
			more++
			return
		}
		short = append(short, Short{Chunk: c, Owner: owner.rank.ID(), Peer: peer, Why: why()})
	}
	for c := range s.chunks {
		owner := s.parts[s.chunks[c].owner]
		if marks := s.marksShort(tables, c, round); marks != "" {
			add(c, owner, owner.rank.ID(), func() string { return marks })
			continue
		}
		for peer := range tables {
			concerned := p == nil || owner == p || peer == p.rank.ID()
			if peer != owner.rank.ID() && concerned && !reached(tables[peer].load(c, kernels.GateArrival), round) {
				add(c, owner, peer, func() string { return owner.queued(tables, c, peer, round) })
			}
		}
	}
	return short, more
}

// marksShort says how many marks a chunk has, or "" if its gate is open.
func (s *shared) marksShort(tables []table, c int, round uint64) string {
	t := &tables[s.chunks[c].owner]
	if reached(t.load(c, kernels.GateReady), round) {
		return ""
	}
	writers := uint64(s.chunks[c].writers)
	seen := t.load(c, kernels.GateWriters) - (round-1)*writers
	return fmt.Sprintf("it has %d of its %d marks", seen, writers)
}

// queued says what keeps one of the rank's chunks that is marked from arriving
// at a peer.
func (p *Plan) queued(tables []table, c, peer int, round uint64) string {
	q := p.rank.Queue(peer)
	if err := q.Fault(); err != nil {
		return err.Error()
	}
	for before := p.first; before < c; before++ {
		if p.shared.marksShort(tables, before, round) != "" {
			return fmt.Sprintf("it is marked, but waits behind chunk %d on queue %s, which is not", before, q.Name())
		}
	}
	if h, waits := q.Behind(&p.owner); waits {
		return fmt.Sprintf("it is marked, but waits behind %v on queue %s", h, q.Name())
	}
	return fmt.Sprintf("it is marked, and its copy on queue %s has not ended", q.Name())
}
