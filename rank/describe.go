package rank

import (
	"fmt"
	"strings"

	"github.com/triggeredplans/sluice/hip"
)

// Description says what a world is made of.
type Description struct {
	World, Platform string
	Ranks           []Place
	Pairs           []Pair
}

// Place is where a rank lives.
type Place struct {
	Rank   int
	Device string
	Memory hip.MemoryKind // in which its heap lies
}

// Pair is an ordered pair of ranks.
type Pair struct {
	From, To int
	Queue    string
	Engine   string // what carries data from one to the other
}

// Describe says where each rank lives and, for every pair of ranks, what carries
// data between them. Its text has a line for each.
func (w *World) Describe() Description {
	d := Description{World: w.name, Platform: w.platform.Describe()}
	for _, r := range w.ranks {
		d.Ranks = append(d.Ranks, Place{Rank: r.id, Device: r.device.Name(), Memory: r.place.Memory})
		for peer, q := range r.queues {
			if q != nil {
				d.Pairs = append(d.Pairs, Pair{From: r.id, To: peer, Queue: q.Name(), Engine: q.Engine()})
			}
		}
	}
	return d
}

func (d Description) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s\n", d.World, d.Platform)
	for _, r := range d.Ranks {
		fmt.Fprintf(&b, "rank %d: %s, heap in %s memory\n", r.Rank, r.Device, r.Memory)
	}
	for _, p := range d.Pairs {
		fmt.Fprintf(&b, "rank %d → rank %d: %s (queue %s)\n", p.From, p.To, p.Engine, p.Queue)
	}
	return b.String()
}
