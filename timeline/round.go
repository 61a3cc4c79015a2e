package timeline

import "time"

// Round is what one rank did in one round of a plan. All times of a world are
// on one clock that began before it; 0 stands for what has not happened, or
// what the platform cannot tell.
type Round struct {
	World, Plan    string
	Rank           int
	Round          uint64
	Started, Ended time.Duration // of Start, and when Wait returned
	Chunks         []Chunk       // the rank's own, in order
}

// Chunk is one chunk of the round's rank.
type Chunk struct {
	ID     int   // counts over all ranks
	Bytes  int64 // that go to each peer
	Marked time.Duration
	Copies []Copy // to each peer, in the order of ranks
}

// Copy is the chunk's way to one peer. The copies of one round to one peer
// follow each other on a queue.
type Copy struct {
	Peer                  int
	Began, Ended, Arrived time.Duration
}

// records is how many copies the round tells of, or chunks that have none.
func (r *Round) records() int {
	n := 0
	for i := range r.Chunks {
		n += max(1, len(r.Chunks[i].Copies))
	}
	return n
}
