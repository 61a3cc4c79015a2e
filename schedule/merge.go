package schedule

import (
	"cmp"
	"slices"
)

// fewest returns parts that hold the same elements as the tiles and take the
// fewest copies, and how many. Besides the tiles as they are it tries joining
// them along rows and then down columns, and the other way round: a chunk of a
// producer that runs down columns often needs the second.
func (b *builder) fewest(tiles []rect) ([]rect, int64) {
	best, n := tiles, b.copies(tiles)
	if len(tiles) == 1 {
		return best, n
	}
	for _, parts := range [][]rect{joinDown(joinAlong(tiles)), joinAlong(joinDown(tiles))} {
		if c := b.copies(parts); c < n {
			best, n = parts, c
		}
	}
	slices.SortFunc(best, inRows)
	return best, n
}

func (b *builder) copies(parts []rect) int64 {
	var n int64
	for _, p := range parts {
		n = add(n, b.window.region(p).copies(b.largest))
	}
	return n
}

// inRows orders parts that do not overlap by row and then by column.
func inRows(p, q rect) int {
	return cmp.Or(cmp.Compare(p.r0, q.r0), cmp.Compare(p.c0, q.c0))
}

// joinAlong joins parts with the same rows that touch at their sides.
func joinAlong(parts []rect) []rect {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, inRows)
	joined := parts[:1]
	for _, p := range parts[1:] {
		if last := &joined[len(joined)-1]; last.r0 == p.r0 && last.r1 == p.r1 && last.c1 == p.c0 {
			last.c1 = p.c1
		} else {
			joined = append(joined, p)
		}
	}
	return joined
}

// joinDown joins parts with the same columns of which one ends where the next
// begins.
func joinDown(parts []rect) []rect {
	turned := make([]rect, len(parts))
	for i, p := range parts {
		turned[i] = p.turned()
	}
	joined := joinAlong(turned)
	for i, p := range joined {
		joined[i] = p.turned()
	}
	return joined
}

func (p rect) turned() rect { return rect{p.c0, p.c1, p.r0, p.r1} }
