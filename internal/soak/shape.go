package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/schedule"
)

// shape is what the ranks of a plan send: each its own rows of a tensor of
// bytes.
type shape struct {
	chunks, rows int // of each rank, of each chunk
	cols, gap    int // bytes of a row, and between rows: with any, regions are windows
	ctas         int // of the kernel that produces
	split        bool
	silent       []int // ranks that send nothing
}

func drawShape(rnd *rand.Rand, ranks int) shape {
	s := shape{
		chunks: 1 + rnd.IntN(5), rows: 1 + rnd.IntN(4),
		cols: pick(rnd, 1+rnd.IntN(64), 1+rnd.IntN(1000), 4096, 1+rnd.IntN(20000)),
		gap:  pick(rnd, 0, 0, 1, 64), ctas: 1 + rnd.IntN(3), split: oneIn(rnd, 2),
	}
	for r := range ranks {
		if oneIn(rnd, 5) && len(s.silent) < ranks-1 {
			s.silent = append(s.silent, r)
		}
	}
	return s
}

func (s shape) String() string {
	return fmt.Sprintf("%d chunks of %d×%d+%d by %d writers, but not of %v", s.chunks, s.rows, s.cols, s.gap, s.writers(), s.silent)
}

// writers is how many marks complete a chunk: with split, every CTA writes a
// part of each chunk.
func (s shape) writers() int {
	if s.split {
		return s.ctas
	}
	return 1
}

func (s shape) sends(rank int) bool { return !slices.Contains(s.silent, rank) }

// sender is a rank that sends.
func (s shape) sender(rnd *rand.Rand, ranks int) int {
	for {
		if r := rnd.IntN(ranks); s.sends(r) {
			return r
		}
	}
}

// bytes is the size of the tensor.
func (s shape) bytes(ranks int) int64 { return int64(ranks * s.chunks * s.rows * (s.cols + s.gap)) }

// payload is what one rank that sends sends to each peer.
func (s shape) payload() uint64 { return uint64(s.chunks * s.rows * s.cols) }

// schedule is what a rank sends of the tensor; nothing if it is silent.
func (s shape) schedule(out *heap.Tensor, rank int) (schedule.Schedule, error) {
	if !s.sends(rank) {
		return nil, nil
	}
	per := s.chunks * s.rows
	w := out.Rows(rank*per, (rank+1)*per).Cols(0, s.cols).Window()
	return schedule.Chunks(w, s.rows, schedule.Options{Writers: s.writers()})
}

// first is the id of a rank's first chunk.
func (s shape) first(rank int) int {
	n := 0
	for r := range rank {
		if s.sends(r) {
			n += s.chunks
		}
	}
	return n
}
