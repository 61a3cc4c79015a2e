package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// samples is how many elements of its own rows a rank compares in a round.
const samples = 64

// seen is what ranks show each other to compare.
type seen struct {
	mu      sync.Mutex
	wrote   [][]byte // by rank: its own rows
	sampled int
	worst   float64
}

func (s *seen) start(ranks int) { s.wrote, s.sampled, s.worst = make([][]byte, ranks), 0, 0 }

func (s *seen) add(sampled int, worst float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampled += sampled
	s.worst = max(s.worst, worst)
}

func (s *seen) result() (sampled int, worst float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampled, s.worst
}

// check looks at what a round left on a rank. The error is an
// *example.WrongError if something is wrong.
func (g *gather) check(ctx context.Context, r *rank.Rank, out *heap.Tensor, in *inputs, use *consumer, chunks schedule.Schedule, round uint64) error {
	wrong := func(format string, args ...any) error {
		return &example.WrongError{Rank: r.ID(), Round: round, What: fmt.Sprintf(format, args...)}
	}
	here := make([]byte, out.Size())
	if err := out.Read(here); err != nil {
		return err
	}
	per := len(here) / r.Size()
	rows := func(of int) []byte { return here[of*per : (of+1)*per] }
	g.seen.wrote[r.ID()] = rows(r.ID())
	if err := r.Barrier(ctx); err != nil { // all have shown theirs
		return err
	}
	for peer := range r.Size() {
		n := different(rows(peer), g.seen.wrote[peer])
		if err := example.Wrong(r.ID(), round, n, "rank %d's rows", peer); err != nil {
			return err
		}
	}
	if row, col, worst := g.sample(in, rows(r.ID()), round); worst > 1 {
		return wrong("element %d, %d of the product off by %.1f times what rounding allows", row, col, worst)
	} else {
		g.seen.add(samples, worst)
	}
	sums, err := use.sums()
	if err != nil {
		return err
	}
	for c, sum := range sums {
		owner, own := c/len(chunks), chunks[c%len(chunks)]
		// Every rank's chunks lie in its rows as this rank's lie in its own.
		if want := sumOf(here, own, int64(per*(owner-r.ID()))); sum != want {
			return wrong("%d as the consumer's sum of chunk %d, whose elements make %d", sum, c, want)
		}
	}
	return r.Barrier(ctx) // nobody changes what others compare with
}

// sample compares elements of the rank's own rows with the product in float64,
// and returns the worst, as a part of what rounding allows.
func (g *gather) sample(in *inputs, own []byte, round uint64) (row, col int, worst float64) {
	x := round * 0x9e3779b97f4a7c15
	for range samples {
		x = x*6364136223846793005 + 1442695040888963407
		i, j := int(x>>33)%g.rows, int(x>>13&0xfffff)%g.cols
		want, slack := in.product(i, j)
		off := math.Abs(element(own, i*g.cols+j)-want) / slack
		if !(off <= worst) { // NaN is worse than all
			row, col, worst = i, j, off
		}
		if math.IsNaN(off) {
			return i, j, math.Inf(1)
		}
	}
	return row, col, worst
}

func different(a, b []byte) (n uint64) {
	if bytes.Equal(a, b) {
		return 0
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// sumOf is the sum of a chunk's elements as unsigned integers, the chunk moved
// by so many bytes.
func sumOf(buffer []byte, c schedule.Chunk, move int64) (sum uint64) {
	for _, r := range c.Regions {
		for row := range r.Height {
			at := r.Offset + move + row*r.Pitch
			for i := at; i < at+r.Width; i += elem {
				sum += uint64(binary.LittleEndian.Uint16(buffer[i:]))
			}
		}
	}
	return sum
}
