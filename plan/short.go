package plan

import (
	"fmt"

	"github.com/triggeredplans/sluice/kernels"
)

// short lists the chunks that keep the rank's round from being done, with what
// each waits for.
func (p *Plan) short(round uint64) (short []Short) {
	s, me := p.shared, p.rank.ID()
	for c := range s.chunks {
		owner := s.parts[s.chunks[c].owner]
		if marks := owner.marksShort(c, round); marks != "" {
			short = append(short, Short{Chunk: c, Owner: owner.rank.ID(), Peer: owner.rank.ID(), Why: marks})
			continue
		}
		for peer, t := range s.tables {
			if peer == owner.rank.ID() || (owner != p && peer != me) || reached(t.load(c, kernels.GateArrival), round) {
				continue
			}
			short = append(short, Short{Chunk: c, Owner: owner.rank.ID(), Peer: peer, Why: owner.queued(c, peer, round)})
		}
	}
	return short
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
