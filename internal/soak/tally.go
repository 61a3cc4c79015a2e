package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tally is what the soak has done so far.
type tally struct {
	worlds, plans atomic.Uint64
	rounds        atomic.Uint64 // delivered on every rank, and every byte checked
	bytes         atomic.Uint64 // carried by engines to peers, and checked there

	mu     sync.Mutex
	faults map[string]uint64 // survived, by kind
}

// survive counts a fault after which everything was as it should be.
func (t *tally) survive(kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults == nil {
		t.faults = map[string]uint64{}
	}
	t.faults[kind]++
}

func (t *tally) survived() (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.faults {
		n += k
	}
	return n
}

func (t *tally) String() string {
	return fmt.Sprintf("%d worlds, %d plans, %d rounds, %.2f GiB, %d faults survived", t.worlds.Load(), t.plans.Load(), t.rounds.Load(), float64(t.bytes.Load())/(1<<30), t.survived())
}

func (t *tally) report(out io.Writer, took time.Duration) {
	fmt.Fprintf(out, "in %v: %v\n", took.Round(time.Second), t)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(t.faults)) {
		fmt.Fprintf(out, "  %6d %s\n", t.faults[kind], kind)
	}
}
