package main

import (
	"context"
	"math"
	"time"
)

// quantile is the value that a part q of sorted lies below, between two
// samples if need be.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// takeTurns runs each measurement once in every turn, so that whatever else
// goes on meanwhile meets all of them, and returns each one's samples. A turn
// before the first warms up.
func takeTurns(n int, measure ...func() (float64, error)) ([][]float64, error) {
	samples := make([][]float64, len(measure))
	for turn := range n + 1 {
		for i, m := range measure {
			v, err := m()
			if err != nil {
				return nil, err
			}
			if turn > 0 {
				samples[i] = append(samples[i], v)
			}
		}
	}
	return samples, nil
}

// pause parks for d, or until ctx ends, whose cause it returns: for what is
// measured after, or while, nothing happens for so long.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ratios divides the samples of the same turn.
func ratios(a, b []float64) []float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return r
}

// inverse is 1 by each sample, times what they count.
func inverse(samples []float64, times float64) []float64 {
	r := make([]float64, len(samples))
	for i, s := range samples {
		r[i] = times / s
	}
	return r
}

// scaled is each sample times a factor.
func scaled(samples []float64, by float64) []float64 {
	r := make([]float64, len(samples))
	for i, s := range samples {
		r[i] = s * by
	}
	return r
}

// fit is the straight line that fits points best, by least squares.
type fit struct{ n, x, y, xx, xy float64 }

func (f *fit) add(x, y float64) {
	f.n, f.x, f.y, f.xx, f.xy = f.n+1, f.x+x, f.y+y, f.xx+x*x, f.xy+x*y
}

func (f *fit) slope() float64 { return (f.n*f.xy - f.x*f.y) / (f.n*f.xx - f.x*f.x) }
