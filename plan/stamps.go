package plan

import (
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/timeline"
)

// The stamps of a traced plan are words of the rank's clock: for each chunk
// when it was marked, which the view writes, and then for each chunk and peer
// when its copy began, ended and arrived, which the queue writes. A rank's
// memory has those of its own chunks; 0 is what has not happened yet.
const stampsPerCopy = 3

func stampWords(chunks, ranks int) int { return chunks * (1 + stampsPerCopy*ranks) }

// stamps is where the queue to peer writes of chunk c.
func (t table) stamps(s *shared, c, peer int) (began, ended, arrived uint64) {
	at := t.addr(t.base + t.at.stamps + 8*int64(s.copyStamp(c, peer)))
	return at, at + 8, at + 16
}

// copyStamp is the index of the first stamp of chunk c's copy to peer.
func (s *shared) copyStamp(c, peer int) int {
	return len(s.chunks) + stampsPerCopy*(c*len(s.tables)+peer)
}

// clearStamps forgets the round before.
func (t table) clearStamps(s *shared) error {
	return t.mem.StoreWords(t.base+t.at.stamps, 8, make([]uint64, stampWords(len(s.chunks), len(s.tables))))
}

// record gives the world's recorder what the rank's stamps say of the round
// that has ended.
func (p *Plan) record(round uint64) {
	s, me := p.shared, p.rank.ID()
	t := s.tables[me]
	words := make([]uint64, stampWords(len(s.chunks), len(s.tables)))
	if err := t.mem.LoadWords(t.base+t.at.stamps, 8, words); err != nil {
		return // a device that is lost has told its Wait
	}
	props := p.rank.Device().Properties()
	since := func(i int) time.Duration { return clockTime(words[i], props.ClockHertz) }
	r := timeline.Round{World: s.world.Name(), Plan: s.name, Rank: me, Round: round, Chunks: make([]timeline.Chunk, len(p.own))}
	if props.HostClock {
		r.Started, r.Ended = time.Duration(p.started.Load()), time.Duration(hip.Clock())
	}
	for i := range r.Chunks {
		c := p.first + i
		ch := timeline.Chunk{ID: c, Marked: since(c)}
		for _, reg := range p.own[i].Regions {
			ch.Bytes += reg.Bytes()
		}
		for peer := range s.tables {
			if at := s.copyStamp(c, peer); peer != me {
				ch.Copies = append(ch.Copies, timeline.Copy{Peer: peer, Began: since(at), Ended: since(at + 1), Arrived: since(at + 2)})
			}
		}
		r.Chunks[i] = ch
	}
	s.world.Timeline().Add(r)
}

// clockTime is a clock's count as time since it began.
func clockTime(count uint64, hertz int64) time.Duration {
	hz := uint64(hertz)
	return time.Duration(count/hz*uint64(time.Second) + count%hz*uint64(time.Second)/hz)
}
