package main

import (
	"sync"
	"time"
)

// skeleton makes the hand-offs of a round between as many goroutines as a plan
// has, over channels, and moves no data: an engine for every pair of ranks is
// told that the round is prepared, then of each chunk's mark, and tells the
// owner and the peer of its arrival; every rank starts a stream, which starts a
// kernel, and waits for it; and the last rank to end a round tells the others.
type skeleton struct {
	chunks  int
	ranks   []*skeletonRank
	engines sync.WaitGroup

	mu   sync.Mutex
	here int
}

type skeletonRank struct {
	engines  []*skeletonEngine // to each peer
	arrivals chan struct{}     // of its own chunks at peers, and of theirs here
	next     chan struct{}
}

type skeletonEngine struct {
	prepared chan struct{}
	marks    chan struct{}
}

func newSkeleton(ranks, chunks int) *skeleton {
	k := &skeleton{chunks: chunks}
	for range ranks {
		k.ranks = append(k.ranks, &skeletonRank{
			arrivals: make(chan struct{}, 2*ranks*chunks),
			next:     make(chan struct{}, 1),
		})
	}
	for from, r := range k.ranks {
		for to, peer := range k.ranks {
			if to == from {
				continue
			}
			e := &skeletonEngine{prepared: make(chan struct{}, 1), marks: make(chan struct{}, chunks)}
			r.engines = append(r.engines, e)
			k.engines.Go(func() {
				for range e.prepared {
					for range chunks {
						<-e.marks
						peer.arrivals <- struct{}{}
						r.arrivals <- struct{}{}
					}
				}
			})
			e.prepared <- struct{}{}
		}
	}
	return k
}

// rounds is the seconds of a round, as the mean of n.
func (k *skeleton) rounds(n int) float64 {
	began := time.Now()
	var ranks sync.WaitGroup
	for _, r := range k.ranks {
		ranks.Go(func() {
			for range n {
				k.round(r)
			}
		})
	}
	ranks.Wait()
	return time.Since(began).Seconds() / float64(n)
}

func (k *skeleton) round(r *skeletonRank) {
	launched := make(chan struct{})
	go func() { // a stream
		var kernel sync.WaitGroup
		kernel.Go(func() {
			for range k.chunks {
				for _, e := range r.engines {
					e.marks <- struct{}{}
				}
			}
		})
		kernel.Wait()
		close(launched)
	}()
	<-launched
	for range 2 * k.chunks * len(r.engines) {
		<-r.arrivals
	}
	k.mu.Lock()
	k.here++
	last := k.here == len(k.ranks)
	if last {
		k.here = 0
	}
	k.mu.Unlock()
	if last {
		for _, o := range k.ranks {
			for _, e := range o.engines {
				e.prepared <- struct{}{}
			}
		}
		for _, o := range k.ranks {
			o.next <- struct{}{}
		}
	}
	<-r.next
}

func (k *skeleton) stop() {
	for _, r := range k.ranks {
		for _, e := range r.engines {
			close(e.prepared)
			for range k.chunks { // of the round that is prepared
				e.marks <- struct{}{}
			}
		}
	}
	k.engines.Wait()
}
