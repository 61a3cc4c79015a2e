package main

import "slices"

// result is one case of a figure.
type result struct {
	Figure string `json:"figure"`
	Case   string `json:"case"`
	Unit   string `json:"unit"`
	// Median, Low and High are of the samples: the middle, and what a tenth of
	// them lies below and above.
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// AtLeast and AtMost are limits for the median.
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
	Holds   *bool    `json:"holds,omitempty"`
	// X and Y place the case in a picture of growth.
	X       float64   `json:"x,omitempty"`
	Samples []float64 `json:"samples"`
	where
}

func newResult(figure, name, unit string, samples []float64) result {
	r := result{Figure: figure, Case: name, Unit: unit, Samples: samples}
	sorted := slices.Sorted(slices.Values(samples))
	r.Low, r.Median, r.High = quantile(sorted, 0.1), quantile(sorted, 0.5), quantile(sorted, 0.9)
	return r
}

// atLeast gives r a limit below which its median must not be.
func (r result) atLeast(limit float64) result {
	holds := r.Median >= limit
	r.AtLeast, r.Holds = &limit, &holds
	return r
}

// atMost gives r a limit above which its median must not be.
func (r result) atMost(limit float64) result {
	holds := r.Median <= limit
	r.AtMost, r.Holds = &limit, &holds
	return r
}

func (r *result) missed() bool { return r.Holds != nil && !*r.Holds }
