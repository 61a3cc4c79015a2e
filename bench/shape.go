package main

import (
	"fmt"

	"github.com/triggeredplans/sluice/schedule"
)

// shape is what every rank sends in a round of an all-gather.
type shape struct {
	ranks  int
	bytes  int64 // from each rank
	width  int64 // of a window's rows in bytes; 0 is linear
	chunks int   // of linear shapes
}

// A windowed shape is a matrix with rows of matrixPitch bytes, sent in bands of
// bandRows rows, each a chunk of windows side by side.
const (
	matrixPitch = 8 << 10
	bandRows    = 128
)

func (s shape) String() string {
	what := "linear"
	if s.width > 0 {
		what = fmt.Sprintf("windows of %d B", s.width)
	}
	if s.bytes < 1<<20 {
		return fmt.Sprintf("%s, %d×%d KiB", what, s.ranks, s.bytes>>10)
	}
	return fmt.Sprintf("%s, %d×%d MiB", what, s.ranks, s.bytes>>20)
}

// total is the size of the tensor that is gathered.
func (s shape) total() int64 { return int64(s.ranks) * s.bytes }

// moved is how many bytes the queues carry in a round.
func (s shape) moved() int64 { return s.total() * int64(s.ranks-1) }

// schedule is what rank r sends.
func (s shape) schedule(r int) schedule.Schedule {
	first := int64(r) * s.bytes
	if s.width > 0 {
		return windows(first, s.bytes, s.width)
	}
	n := max(1, s.chunks)
	each := s.bytes / int64(n)
	chunks := make(schedule.Schedule, n)
	for i := range chunks {
		chunks[i] = schedule.Chunk{Writers: 1, Regions: []schedule.Region{linear(first+int64(i)*each, each)}}
	}
	return chunks
}

func linear(offset, n int64) schedule.Region {
	return schedule.Region{Offset: offset, Width: n, Height: 1, Pitch: n}
}

func windows(first, bytes, width int64) (chunks schedule.Schedule) {
	const band = bandRows * matrixPitch
	for at := first; at < first+bytes; at += band {
		c := schedule.Chunk{Writers: 1}
		for x := int64(0); x < matrixPitch; x += width {
			c.Regions = append(c.Regions, schedule.Region{Offset: at + x, Width: width, Height: bandRows, Pitch: matrixPitch})
		}
		chunks = append(chunks, c)
	}
	return chunks
}
