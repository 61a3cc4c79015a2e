package rank

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/internal/histogram"
)

// Tally is what a world's plans have done so far: they keep it, and whoever
// observes the world reads it. Everything in it only grows.
type Tally struct {
	// Preparation has the times that putting a round on every queue took.
	Preparation histogram.Histogram
	Ranks       []RankTally

	mu      sync.Mutex
	refused map[string]uint64
}

// RankTally is one rank's part of a Tally.
type RankTally struct {
	Rounds   atomic.Uint64       // delivered
	Timeouts atomic.Uint64       // Waits that ended with their context
	Wait     histogram.Histogram // the times that Waits took

	// Marks counts MarkReady calls, Extra those beyond a chunk's writers or of
	// chunks that are not the rank's, both of plans that have ended; those of
	// living plans are in their gates. The tally's lock guards them.
	Marks, Extra uint64
}

// Refuse counts a preparation that failed on a rank.
func (t *Tally) Refuse(kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil {
		t.refused = map[string]uint64{}
	}
	t.refused[kind]++
}

// Refused is how many preparations have failed, by kind.
func (t *Tally) Refused() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.refused)
}

// Locked runs f while no plan moves its marks into the tally.
func (t *Tally) Locked(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// Tally is what the world's plans have done so far.
func (w *World) Tally() *Tally { return &w.tally }

// Queues are the host queues between the world's ranks, in the order of the
// ranks that they lead from and to; none once the world is closed.
func (w *World) Queues() (qs []*copyengine.Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	for _, r := range w.ranks {
		for _, q := range r.queues {
			if q != nil {
				qs = append(qs, q)
			}
		}
	}
	return qs
}

// Closed reports whether Close has been called.
func (w *World) Closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}
