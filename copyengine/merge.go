package copyengine

import "github.com/triggeredplans/sluice/hip"

// Copies that are alike and equally far apart make one window, which costs a
// stream one command and its host next to nothing.

// leastMerged is how many linear copies are worth a window of their own: a few
// cost less in a batch with others.
const leastMerged = 4

// maxPitch is the largest distance of rows that a window may have.
const maxPitch = 1<<31 - 1

// merge brings a step's copies into few lines and windows that move the same
// bytes.
func merge(copies []Copy) (lines []hip.CopyLine, windows []hip.CopyWindow) {
	var rows []Copy // with more than one row
	for len(copies) > 0 {
		c := linear(copies[0])
		n := run(copies)
		switch {
		case c.Height > 1:
			rows = append(rows, c)
			n = 1
		case n >= leastMerged:
			c.Height = int64(n)
			c.SrcPitch, c.DstPitch = distance(copies[0], copies[1])
			rows = append(rows, c)
		default:
			n = 1
			lines = append(lines, hip.CopyLine{Src: c.Src, Dst: c.Dst, Bytes: c.Width})
		}
		copies = copies[n:]
	}
	for len(rows) > 0 {
		w, n := stack(rows)
		windows = append(windows, w)
		rows = rows[n:]
	}
	return lines, windows
}

// linear makes rows that touch on both sides one row.
func linear(c Copy) Copy {
	if c.SrcPitch == c.Width && c.DstPitch == c.Width {
		c.Width *= c.Height
		c.Height = 1
	}
	return c
}

// distance is how far b's sides lie behind a's, as wrapping differences.
func distance(a, b Copy) (src, dst int64) { return int64(b.Src - a.Src), int64(b.Dst - a.Dst) }

// run is how many linear copies from the first on are alike and equally far
// apart.
func run(copies []Copy) int {
	first := linear(copies[0])
	if first.Height > 1 || len(copies) == 1 {
		return 1
	}
	src, dst := distance(copies[0], copies[1])
	if !pitches(first.Width, src, dst) {
		return 1
	}
	n := 1
	for n < len(copies) {
		c := linear(copies[n])
		s, d := distance(copies[n-1], copies[n])
		if c.Height > 1 || c.Width != first.Width || s != src || d != dst {
			break
		}
		n++
	}
	return n
}

// pitches says whether rows of that width can lie so far apart.
func pitches(width, src, dst int64) bool {
	return min(src, dst) >= width && max(src, dst) <= maxPitch
}

// stack makes one window of as many copies as it can, and says of how many.
func stack(rows []Copy) (w hip.CopyWindow, n int) {
	c := rows[0]
	w = hip.CopyWindow{
		Src: c.Src, Dst: c.Dst, Width: c.Width, Rows: c.Height, Slices: 1,
		SrcPitch: c.SrcPitch, DstPitch: c.DstPitch, SrcHeight: c.Height, DstHeight: c.Height,
	}
	if len(rows) == 1 {
		return w, 1
	}
	src, dst := distance(rows[0], rows[1])
	for n = 1; n < len(rows); n++ {
		s, d := distance(rows[n-1], rows[n])
		if o := rows[n]; o.Width != c.Width || o.Height != c.Height || o.SrcPitch != c.SrcPitch || o.DstPitch != c.DstPitch || s != src || d != dst {
			break
		}
	}
	switch {
	case n == 1:
	case below(c, src, dst): // slices of whole rows
		w.Slices, w.SrcHeight, w.DstHeight = int64(n), src/c.SrcPitch, dst/c.DstPitch
	case beside(c, int64(n), src, dst): // a row of each is a slice
		w.Slices, w.Rows = c.Height, int64(n)
		w.SrcPitch, w.DstPitch, w.SrcHeight, w.DstHeight = src, dst, c.SrcPitch/src, c.DstPitch/dst
	default:
		return w, 1
	}
	return w, n
}

// below says whether copies like c lie one under the other, whole rows apart.
func below(c Copy, src, dst int64) bool {
	whole := func(by, pitch int64) bool { return by > 0 && by%pitch == 0 && by/pitch >= c.Height }
	return whole(src, c.SrcPitch) && whole(dst, c.DstPitch)
}

// beside says whether n copies like c lie side by side, and so far apart that
// their rows do too.
func beside(c Copy, n, src, dst int64) bool {
	part := func(by, pitch int64) bool { return by > 0 && pitch%by == 0 && pitch/by >= n }
	return pitches(c.Width, src, dst) && part(src, c.SrcPitch) && part(dst, c.DstPitch)
}
