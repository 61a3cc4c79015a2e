package main

import (
	"fmt"
	"math"
)

// growth measures rounds and preparations from one to many, and how fast they
// grow: the slope between two neighbours in a picture with logarithmic axes is
// 1 where twice the work takes twice the time.
func growth(s *suite) error {
	for _, g := range growths(s) {
		if err := g.measure(s); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// growthOf is one line of the picture.
type growthOf struct {
	name  string
	cases []growthCase
}

type growthCase struct {
	x    float64 // chunks × peers over all ranks
	took func() ([]float64, error)
}

func growths(s *suite) []growthOf {
	byChunks := growthOf{name: "round of 4 ranks, by chunks"}
	for _, chunks := range pick(s, []int{1, 10}, []int{1, 10, 100, 1000, 10000}, []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10000}) {
		byChunks.cases = append(byChunks.cases, s.roundCase(4, chunks))
	}
	byRanks := growthOf{name: "round of 16 chunks each, by ranks"}
	for _, ranks := range pick(s, []int{2, 4}, []int{2, 4, 8, 16, 32}, []int{2, 4, 8, 16, 32}) {
		byRanks.cases = append(byRanks.cases, s.roundCase(ranks, 16))
	}
	prepared := growthOf{name: "preparing for 3 peers, by chunks"}
	for _, chunks := range pick(s, []int{1, 10}, []int{1, 10, 100, 1000, 10000}, []int{1, 3, 10, 30, 100, 300, 1000, 3000, 10000}) {
		prepared.cases = append(prepared.cases, growthCase{float64(3 * chunks), func() ([]float64, error) {
			_, took, err := s.preparing(load{peers: 3, regions: chunks, alone: true})
			return took, err
		}})
	}
	return []growthOf{byChunks, byRanks, prepared}
}

func (s *suite) roundCase(ranks, chunks int) growthCase {
	sh := shape{ranks: ranks, bytes: int64(chunkBytes * chunks), chunks: chunks}
	return growthCase{float64(ranks * (ranks - 1) * chunks), func() (took []float64, err error) {
		w, err := s.wornIn(sh)
		if err != nil {
			return nil, err
		}
		defer w.shut(&err)
		each, err := w.rounds(3)
		if err != nil {
			return nil, err
		}
		samples, err := takeTurns(s.turns(), func() (float64, error) { return w.rounds(howMany(each, turnSeconds)) })
		if err != nil {
			return nil, err
		}
		return samples[0], nil
	}}
}

// steepest is the largest slope that counts as linear: caches make the last
// step of a straight line a little steeper than the others.
const steepest = 1.15

func (g growthOf) measure(s *suite) error {
	var x, y float64
	steep := math.Inf(-1)
	for _, c := range g.cases {
		took, err := c.took()
		if err != nil {
			return err
		}
		r := s.result(fmt.Sprintf("%s: chunks × peers = %v", g.name, c.x), "µs", scaled(took, 1e6))
		r.X = c.x
		if err := s.emit(r); err != nil {
			return err
		}
		if x > 0 {
			steep = max(steep, math.Log(r.Median/y)/math.Log(c.x/x))
		}
		x, y = c.x, r.Median
	}
	return s.emit(s.result(g.name, "steepest slope", []float64{steep}).atMost(steepest))
}
