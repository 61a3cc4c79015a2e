package schedule

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Shared is bytes that two schedules both send: [Lo, Hi) of the buffer, and
// the chunk and region of each that they belong to.
type Shared struct {
	ChunkA, RegionA int
	ChunkB, RegionB int
	Lo, Hi          int64
}

// Overlap looks for bytes that a and b both send, and reports whether there
// are any. Where windows have one pitch it takes n·log n for n regions; one of
// another pitch than most counts as its rows. A region that Validate refuses
// whatever the buffer counts as empty.
func Overlap(a, b Schedule) (*Shared, bool) { return overlap(a, b, 1<<20) }

// overlap is Overlap with at most so many cells of each side in memory: rows
// of windows with an odd pitch can be very many.
func overlap(a, b Schedule, batch int) (*Shared, bool) {
	lo, hi := a.extent()
	lo2, hi2 := b.extent()
	g := grid{pitch: commonPitch(a, b), lo: max(lo, lo2), hi: min(hi, hi2)}
	if g.lo >= g.hi {
		return nil, false
	}
	// Ranks that share a buffer by columns overlap in extent and in nothing
	// else, so what lies outside both bounding boxes is dropped first.
	box := bounds(g.cells(a)).meet(bounds(g.cells(b)))
	if box.empty() {
		return nil, false
	}
	for as := range batches(g.cells(a), box, batch) {
		for bs := range batches(g.cells(b), box, batch) {
			if s := g.sweep(as, bs); s != nil {
				return s, true
			}
		}
	}
	return nil, false
}

// site is a region's place in its schedule.
type site struct{ chunk, region int }

// regions gives every region that has bytes, with its place.
func (s Schedule) regions() iter.Seq2[site, Region] {
	return func(yield func(site, Region) bool) {
		for i, c := range s {
			for j, r := range c.Regions {
				if r.check(math.MaxInt64-1, math.MaxInt64) == nil && !yield(site{i, j}, r) {
					return
				}
			}
		}
	}
}

// extent is the range from the first byte to after the last.
func (s Schedule) extent() (lo, hi int64) {
	lo = math.MaxInt64
	for _, r := range s.regions() {
		lo, hi = min(lo, r.Offset), max(hi, r.End())
	}
	return lo, hi
}

// commonPitch is the pitch that most rows of windows have; without windows,
// one that puts the whole buffer in one row.
func commonPitch(schedules ...Schedule) int64 {
	rows := map[int64]int64{}
	for _, s := range schedules {
		for _, r := range s.regions() {
			if !r.Linear() {
				rows[r.Pitch] = add(rows[r.Pitch], r.Height)
			}
		}
	}
	best := int64(math.MaxInt64)
	for p, n := range rows {
		if n > rows[best] || n == rows[best] && p < best {
			best = p
		}
	}
	return best
}

// grid lays the buffer out in rows of pitch bytes, so that windows of that
// pitch are rectangles. It looks at the bytes [lo, hi) only.
type grid struct{ pitch, lo, hi int64 }

// cell is a rectangle of the grid, columns [x0, x1) of rows [y0, y1), and
// the region that it is of.
type cell struct {
	x0, x1, y0, y1 int64
	from           site
}

func (c cell) empty() bool { return c.x0 >= c.x1 || c.y0 >= c.y1 }

func (c cell) meet(d cell) cell {
	return cell{max(c.x0, d.x0), min(c.x1, d.x1), max(c.y0, d.y0), min(c.y1, d.y1), c.from}
}

// cells are the rectangles of a schedule's regions.
func (g grid) cells(s Schedule) iter.Seq[cell] {
	return func(yield func(cell) bool) {
		for from, r := range s.regions() {
			put := func(x0, x1, y0, y1 int64) bool {
				c := cell{x0, x1, y0, y1, from}
				return c.empty() || yield(c)
			}
			if !g.place(r, put) {
				return
			}
		}
	}
}

// place gives put the rectangles of r until it returns false.
func (g grid) place(r Region, put func(x0, x1, y0, y1 int64) bool) bool {
	if r.End() <= g.lo || r.Offset >= g.hi {
		return true
	}
	x, y := r.Offset%g.pitch, r.Offset/g.pitch
	switch {
	case r.Linear():
		// The rest of the first row, whole rows, the beginning of the last.
		last, end := (r.End()-1)/g.pitch, (r.End()-1)%g.pitch+1
		if y == last {
			return put(x, end, y, y+1)
		}
		return put(x, g.pitch, y, y+1) && put(0, g.pitch, y+1, last) && put(0, end, last, last+1)
	case r.Pitch == g.pitch:
		over := max(0, x+r.Width-g.pitch) // what reaches into the next row
		return put(x, x+r.Width-over, y, y+r.Height) && put(0, over, y+1, y+1+r.Height)
	}
	first := max(0, g.lo-r.Offset) / r.Pitch
	for i := first; i < r.Height; i++ {
		row := linear(r.Offset+i*r.Pitch, r.Width)
		if row.Offset >= g.hi {
			break
		}
		if !g.place(row, put) {
			return false
		}
	}
	return true
}

// bounds is the smallest rectangle around all cells.
func bounds(cells iter.Seq[cell]) cell {
	b := cell{x0: math.MaxInt64, y0: math.MaxInt64}
	for c := range cells {
		b.x0, b.x1 = min(b.x0, c.x0), max(b.x1, c.x1)
		b.y0, b.y1 = min(b.y0, c.y0), max(b.y1, c.y1)
	}
	return b
}

// batches gives the cells that reach into box, at most so many at a time.
func batches(cells iter.Seq[cell], box cell, most int) iter.Seq[[]cell] {
	return func(yield func([]cell) bool) {
		var batch []cell
		for c := range cells {
			if c.meet(box).empty() {
				continue
			}
			if batch = append(batch, c); len(batch) == most {
				if !yield(batch) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// edge is where a cell of one side begins or ends as the sweep comes down the
// rows.
type edge struct {
	y     int64
	begin bool
	side  int
	cell  int
}

// sweep goes down the rows and keeps, for each side, the columns that its
// cells cover at the moment. A cell that begins where the other side's columns
// are covered shares bytes with it.
func (g grid) sweep(a, b []cell) *Shared {
	sides := [2][]cell{a, b}
	var edges []edge
	var xs []int64
	for side, cells := range sides {
		for i, c := range cells {
			edges = append(edges, edge{c.y0, true, side, i}, edge{c.y1, false, side, i})
			xs = append(xs, c.x0, c.x1)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	slices.SortFunc(edges, func(e, f edge) int {
		if e.y == f.y && e.begin != f.begin {
			if f.begin {
				return -1 // what ends here is gone before the next begins
			}
			return 1
		}
		return cmp.Or(cmp.Compare(e.y, f.y), cmp.Compare(e.side, f.side), cmp.Compare(e.cell, f.cell))
	})
	open := [2]intervals{newIntervals(len(xs)), newIntervals(len(xs))}
	for _, e := range edges {
		c := sides[e.side][e.cell]
		lo, _ := slices.BinarySearch(xs, c.x0)
		hi, _ := slices.BinarySearch(xs, c.x1)
		switch {
		case !e.begin:
			open[e.side].count(lo, hi, -1)
		case open[1-e.side].meets(lo, hi):
			return g.shared(sides, e)
		default:
			open[e.side].count(lo, hi, 1)
		}
	}
	return nil
}

// shared finds what the cell that begins at e shares with the other side in
// that row.
func (g grid) shared(sides [2][]cell, e edge) *Shared {
	c := sides[e.side][e.cell]
	c.y0, c.y1 = e.y, e.y+1
	for _, d := range sides[1-e.side] {
		m := c.meet(d)
		if m.empty() {
			continue
		}
		s := &Shared{c.from.chunk, c.from.region, d.from.chunk, d.from.region, e.y*g.pitch + m.x0, e.y*g.pitch + m.x1}
		if e.side == 1 {
			s.ChunkA, s.RegionA, s.ChunkB, s.RegionB = s.ChunkB, s.RegionB, s.ChunkA, s.RegionA
		}
		return s
	}
	return nil
}
