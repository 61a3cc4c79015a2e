package main

import (
	"sync/atomic"
	"time"
)

// sink keeps computations from being left out.
var sink atomic.Uint64

// compute does so many steps of something that touches no memory.
func compute(steps int) {
	x := uint64(steps) | 1
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 {
		sink.Add(1)
	}
}

// stepsFor is how many steps take so long here.
func stepsFor(d time.Duration) int {
	const steps = 1 << 20
	best := time.Hour
	for range 5 {
		began := time.Now()
		compute(steps)
		best = min(best, time.Since(began))
	}
	return int(float64(steps) * d.Seconds() / best.Seconds())
}
