package plan

import (
	"fmt"
	"math"

	"github.com/triggeredplans/sluice/kernels"
)

// short lists the chunks that keep the rank's round from being done, with what
// each waits for.
func (p *Plan) short(round uint64) []Short {
	short, _ := p.shared.short(p, round, math.MaxInt)
	return short
}

// short is what rank p waits for in a round, or all ranks together if p is
// nil: up to limit chunks, and how many more there are.
func (s *shared) short(p *Plan, round uint64, limit int) (short []Short, more int) {
	add := func(c int, owner *Plan, peer int, why func() string) {
		if len(short) == limit {
			more++
			return
		}
		short = append(short, Short{Chunk: c, Owner: owner.rank.ID(), Peer: peer, Why: why()})
	}
	for c := range s.chunks {
		owner := s.parts[s.chunks[c].owner]
		if marks := owner.marksShort(c, round); marks != "" {
			add(c, owner, owner.rank.ID(), func() string { return marks })
			continue
		}
		for peer, t := range s.tables {
			concerned := p == nil || owner == p || peer == p.rank.ID()
			if peer != owner.rank.ID() && concerned && !reached(t.load(c, kernels.GateArrival), round) {
				add(c, owner, peer, func() string { return owner.queued(c, peer, round) })
			}
		}
	}
	return short, more
}

// marksShort says how many marks one of the rank's chunks has, or "" if its
// gate is open.
func (p *Plan) marksShort(c int, round uint64) string {
	t := p.shared.tables[p.rank.ID()]
	if reached(t.load(c, kernels.GateReady), round) {
		return ""
	}
	writers := uint64(p.shared.chunks[c].writers)
	seen := t.load(c, kernels.GateWriters) - (round-1)*writers
	return fmt.Sprintf("it has %d of its %d marks", seen, writers)
}

// queued says what keeps a chunk that is marked from arriving at a peer.
func (p *Plan) queued(c, peer int, round uint64) string {
	q := p.rank.Queue(peer)
	if err := q.Fault(); err != nil {
		return err.Error()
	}
	for before := p.first; before < c; before++ {
		if p.marksShort(before, round) != "" {
			return fmt.Sprintf("it is marked, but waits behind chunk %d on queue %s, which is not", before, q.Name())
		}
	}
	if h, waits := q.Behind(&p.owner); waits {
		return fmt.Sprintf("it is marked, but waits behind %v on queue %s", h, q.Name())
	}
	return fmt.Sprintf("it is marked, and its copy on queue %s has not ended", q.Name())
}
