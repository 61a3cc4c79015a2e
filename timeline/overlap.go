package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Overlap is how much of the rounds' copying went on while their producers
// computed: 0 when every copy began behind the last mark, 1 when none did. The
// rounds are those of one round of a plan on all ranks. It is 0 without copies.
func Overlap(rounds []Round) float64 {
	var computing, copying []Span
	for i := range rounds {
		computing = append(computing, rounds[i].Computed()...)
		copying = append(copying, rounds[i].copied()...)
	}
	computing, copying = union(computing), union(copying)
	var both time.Duration
	for _, a := range computing {
		for _, b := range copying {
			both += max(0, min(a.To, b.To)-max(a.From, b.From))
		}
	}
	if all := total(copying); all > 0 {
		return float64(both) / float64(all)
	}
	return 0
}

// copied is when the round's copies went on.
func (r *Round) copied() (spans []Span) {
	for _, c := range r.Chunks {
		for _, k := range c.Copies {
			if k.Began > 0 && k.Ended > 0 {
				spans = append(spans, Span{ID: c.ID, From: k.Began, To: k.Ended})
			}
		}
	}
	return spans
}

// union is the time that spans cover together, in order and without overlaps.
func union(spans []Span) (out []Span) {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

func total(spans []Span) (d time.Duration) {
	for _, s := range spans {
		d += s.To - s.From
	}
	return d
}
