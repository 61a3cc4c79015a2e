package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// load is what one rank prepares for each of its peers.
type load struct {
	peers, regions int
	windows        bool // regions are windows
	alone          bool // every region is a chunk of its own
}

func (l load) String() string {
	kind := "linear"
	if l.windows {
		kind = "windows"
	}
	if l.alone {
		kind += " in chunks of 1"
	}
	return fmt.Sprintf("%d %s × %s", l.regions, kind, count(l.peers, "peer"))
}

// packets is the bytes of the packets for one peer.
func (l load) packets() int64 {
	each, chunks := int64(sdma.LinearBytes), int64(1)
	if l.windows {
		each = sdma.WindowBytes
	}
	if l.alone {
		chunks = int64(l.regions)
	}
	return int64(l.regions)*each + chunks*(sdma.PollBytes+sdma.AtomicBytes)
}

// region bytes: as little as makes a window, since only packets count here.
const (
	loadWidth = 4
	loadPitch = 16
	loadRows  = 2
)

func (l load) bytes() int64 { return int64(l.regions) * loadRows * loadPitch }

// schedule is rank 0's; the others send nothing.
func (l load) schedule(r int) (chunks schedule.Schedule) {
	if r != 0 {
		return nil
	}
	for i := range l.regions {
		reg := linear(int64(i)*loadRows*loadPitch, loadWidth)
		if l.windows {
			reg.Height, reg.Pitch = loadRows, loadPitch
		}
		if i == 0 || l.alone {
			chunks = append(chunks, schedule.Chunk{Writers: 1})
		}
		last := &chunks[len(chunks)-1]
		last.Regions = append(last.Regions, reg)
	}
	return chunks
}

// prepare compares NextRound, with every other rank there already, with
// copying the packets. The limit is for 4,096 windows and 3 peers.
func prepare(s *suite) error {
	half := copyengine.DefaultRingBytes / 2
	most := func(each int) int { return (half - sdma.PollBytes - sdma.AtomicBytes) / each }
	regions := pick(s, 64, 4096, 4096)
	loads := []load{
		{peers: 3, regions: regions, windows: true},
		{peers: 3, regions: regions, windows: true, alone: true},
	}
	if s.scope > brief {
		for _, peers := range []int{1, 3, 7} {
			for _, n := range pick(s, nil, []int{64, 4096}, []int{1, 64, 1024, 4096, 16384}) {
				loads = append(loads, load{peers: peers, regions: n}, load{peers: peers, regions: n, alone: true})
			}
			loads = append(loads, load{peers: peers, regions: most(sdma.LinearBytes)}, load{peers: peers, regions: most(sdma.WindowBytes), windows: true})
		}
	}
	for _, l := range loads {
		ratio, took, err := s.preparing(l)
		if err != nil {
			return fmt.Errorf("%v: %w", l, err)
		}
		r := s.result(l.String(), "×memcpy", ratio)
		if l.windows && l.regions == 4096 && l.peers == 3 {
			r = r.atMost(2)
		}
		if err := s.emit(r); err != nil {
			return err
		}
		if err := s.emit(s.result(l.String(), "µs", scaled(took, 1e6))); err != nil {
			return err
		}
	}
	return nil
}

// ring is the size of the rings that l is prepared on.
func (l load) ring() int64 {
	if l.packets() < 64<<10 { // it would take long to write a ring of the usual size to its end
		return 128 << 10
	}
	return copyengine.DefaultRingBytes
}

// loaded is a world with a plan of l, on rings that have all their pages.
func (s *suite) loaded(l load) (*world, error) {
	w, err := s.plannedOn(l.ring(), l.peers+1, l.bytes(), l.schedule)
	if err != nil {
		return nil, err
	}
	if s.scope > brief {
		if _, err := w.preparation(int(l.ring()/l.packets()) + 1); err != nil {
			w.shut(&err)
			return nil, err
		}
	}
	return w, nil
}

// preparing is what a NextRound takes of rank 0, beside memcpy and in seconds.
func (s *suite) preparing(l load) (ratio, took []float64, err error) {
	w, err := s.loaded(l)
	if err != nil {
		return nil, nil, err
	}
	defer w.shut(&err)
	const n = 5
	copies := newPacketCopies(l, l.ring())
	samples, err := takeTurns(4*s.turns(),
		func() (float64, error) { return w.preparation(n) },
		func() (float64, error) { return copies.mean(s.ctx, n) })
	if err != nil {
		return nil, nil, err
	}
	return ratios(samples[0], samples[1]), samples[0], nil
}

// preparation is the seconds that NextRound takes of rank 0 when all others
// are there, as the mean of n rounds.
func (w *world) preparation(n int) (float64, error) {
	var took time.Duration
	var waiting atomic.Int64
	err := w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) error {
		p := w.plans[r.ID()]
		for i := range n {
			if err := start(ctx, r, p, markAll); err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			if r.ID() != 0 {
				waiting.Add(1)
				if err := p.NextRound(ctx); err != nil {
					return err
				}
				continue
			}
			for waiting.Load() < int64((i+1)*(w.Size()-1)) {
				runtime.Gosched()
			}
			if err := pause(ctx, parking); err != nil {
				return err
			}
			began := time.Now()
			if err := p.NextRound(ctx); err != nil {
				return err
			}
			took += time.Since(began)
		}
		return nil
	})
	return took.Seconds() / float64(n), err
}

// parking is what ranks that wait in NextRound are given to park.
const parking = 50 * time.Microsecond

// packetCopies copies a load's packets into rings, as a preparation does.
type packetCopies struct {
	packets [][]byte
	rings   [][]byte
	at      int
}

func newPacketCopies(l load, ringBytes int64) *packetCopies {
	c := &packetCopies{}
	for range l.peers {
		packets, ring := make([]byte, l.packets()), make([]byte, ringBytes)
		for i := range packets {
			packets[i] = byte(i)
		}
		for i := range ring {
			ring[i] = byte(i)
		}
		c.packets, c.rings = append(c.packets, packets), append(c.rings, ring)
	}
	return c
}

// mean is the seconds for all peers' packets once, of n times, with the same
// pause between two of them as a preparation has.
func (c *packetCopies) mean(ctx context.Context, n int) (float64, error) {
	var took time.Duration
	for range n {
		if err := pause(ctx, parking); err != nil {
			return 0, err
		}
		began := time.Now()
		for i, packets := range c.packets {
			if c.at+len(packets) > len(c.rings[i]) {
				k := copy(c.rings[i][c.at:], packets)
				copy(c.rings[i], packets[k:])
			} else {
				copy(c.rings[i][c.at:], packets)
			}
		}
		c.at = (c.at + len(c.packets[0])) % len(c.rings[0])
		took += time.Since(began)
	}
	return took.Seconds() / float64(n), nil
}
