package timeline

import (
	"cmp"
	"slices"
	"sync"
)

// DefaultLimit is how many copies a Recorder keeps where Limit does not say:
// some 50 MiB of them.
const DefaultLimit = 1 << 20

// Recorder collects rounds. The zero value is ready for use, by many
// goroutines; set it as rank.Config's Timeline.
type Recorder struct {
	// Limit is the most copies that are kept, 0 standing for DefaultLimit; the
	// oldest rounds go when more come.
	Limit int

	mu      sync.Mutex
	rounds  []Round
	records int
	dropped int
}

// Add records a round. Plans call it when a Wait ends.
func (r *Recorder) Add(round Round) {
	limit := r.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds = append(r.rounds, round)
	r.records += round.records()
	n := 0
	for r.records > limit && n < len(r.rounds)-1 {
		r.records -= r.rounds[n].records()
		n++
	}
	r.rounds = slices.Delete(r.rounds, 0, n)
	r.dropped += n
}

// Rounds are those that are kept, in the order of their start and then of
// their ranks.
func (r *Recorder) Rounds() []Round {
	r.mu.Lock()
	rounds := slices.Clone(r.rounds)
	r.mu.Unlock()
	slices.SortStableFunc(rounds, func(a, b Round) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Rank, b.Rank))
	})
	return rounds
}

// Dropped is how many rounds went because of the limit.
func (r *Recorder) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}
