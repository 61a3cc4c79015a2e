package main

import (
	"fmt"
	"math"
	"slices"
)

// growth measures rounds and preparations from one to many, and how fast they
// grow: in a picture with logarithmic axes the slope is 1 where twice the work
// takes twice the time.
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
	open func() (*world, error)
	took func(w *world) (seconds float64, err error)
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
		l := load{peers: 3, regions: chunks, alone: true}
		prepared.cases = append(prepared.cases, growthCase{float64(3 * chunks),
			func() (*world, error) { return s.loaded(l) },
			func(w *world) (float64, error) { return w.preparation(5) }})
	}
	return []growthOf{byChunks, byRanks, prepared}
}

func (s *suite) roundCase(ranks, chunks int) growthCase {
	sh := shape{ranks: ranks, bytes: int64(chunkBytes * chunks), chunks: chunks}
	var n int
	return growthCase{float64(ranks * (ranks - 1) * chunks),
		func() (*world, error) { return s.wornIn(sh) },
		func(w *world) (float64, error) {
			if n == 0 {
				each, err := w.rounds(3)
				if err != nil {
					return 0, err
				}
				n = howMany(each, turnSeconds)
			}
			return w.rounds(n)
		}}
}

// steepest is the largest slope that counts as linear: where little is done,
// much of it is cheaper from the cache.
const steepest = 1.15

// measure has all cases of the line take turns, so that each turn is a line of
// its own whatever else the machine does meanwhile.
func (g growthOf) measure(s *suite) (err error) {
	var measures []func() (float64, error)
	for _, c := range g.cases {
		w, err := c.open()
		if err != nil {
			return err
		}
		defer w.shut(&err)
		measures = append(measures, func() (float64, error) { return c.took(w) })
	}
	samples, err := takeTurns(s.turns(), measures...)
	if err != nil {
		return err
	}
	var before result
	var steps []float64
	for i, c := range g.cases {
		r := s.result(fmt.Sprintf("%s: chunks × peers = %v", g.name, c.x), "µs", scaled(samples[i], 1e6))
		r.X = c.x
		if err := s.emit(r); err != nil {
			return err
		}
		if i > 0 {
			steps = append(steps, math.Log(r.Median/before.Median)/math.Log(r.X/before.X))
		}
		before = r
	}
	var slopes []float64
	for turn := range samples[0] {
		var line fit
		for i, c := range g.cases {
			line.add(math.Log(c.x), math.Log(samples[i][turn]))
		}
		slopes = append(slopes, line.slope())
	}
	if err := s.emit(s.result(g.name, "slope", slopes).atMost(steepest)); err != nil {
		return err
	}
	// A line through all points hides the step at which something changes.
	return s.emit(s.result(g.name, "steepest step", []float64{slices.Max(steps)}).atMost(steepest))
}
