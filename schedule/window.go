package schedule

import "math"

// Window is a 2D tensor as bytes of the buffer: Rows rows of Cols elements of
// Elem bytes, the first at Offset bytes from the buffer's start and each row
// Pitch bytes after the one before it. Pitch counts only where Rows is above 1.
type Window struct {
	Offset     int64
	Rows, Cols int
	Elem       int
	Pitch      int64
}

// check names what is wrong with w.
func (w Window) check() *Error {
	if w.Rows < 1 || w.Cols < 1 || w.Elem < 1 {
		return wrong(ErrSize, int64(min(w.Rows, w.Cols, w.Elem)), 1,
			"a window of %d×%d elements of %d bytes; all must be at least 1 (a rank that sends nothing has an empty schedule)",
			w.Rows, w.Cols, w.Elem)
	}
	all := Region{w.Offset, mul(int64(w.Cols), int64(w.Elem)), int64(w.Rows), w.Pitch}
	if w.Rows > 1 && w.Pitch < all.Width {
		return wrong(ErrPitch, w.Pitch, all.Width, "a window with rows of %d bytes only %d apart; the pitch must be at least the width", all.Width, w.Pitch)
	}
	if w.Offset < 0 || all.End() == math.MaxInt64 {
		return wrong(ErrBounds, w.Offset, math.MaxInt64, "a window of %v, which is no part of any buffer", all)
	}
	return nil
}

// rect is the part of a window with rows [r0, r1) and columns [c0, c1).
type rect struct{ r0, r1, c0, c1 int }

// region is the part's bytes, however many; linear if they have no gaps.
func (w Window) region(p rect) Region {
	r := Region{
		Offset: w.Offset + int64(p.r0)*w.Pitch + int64(p.c0)*int64(w.Elem),
		Width:  mul(int64(p.c1-p.c0), int64(w.Elem)),
		Height: int64(p.r1 - p.r0),
		Pitch:  w.Pitch,
	}
	if r.Linear() {
		return linear(r.Offset, r.Bytes())
	}
	return r
}

// rowsPerCopy is how many rows of r one copy may take; 0 if every row must be
// a linear copy of its own, or several.
func (r Region) rowsPerCopy(largest int64) int64 {
	if r.Pitch > LargestPitch {
		return 0
	}
	return largest / r.Width
}

// copies is how many regions split makes of r.
func (r Region) copies(largest int64) int64 {
	if r.Linear() {
		return ceil(r.Bytes(), largest)
	}
	if n := r.rowsPerCopy(largest); n > 0 {
		return ceil(r.Height, n)
	}
	return mul(r.Height, ceil(r.Width, largest))
}

// split appends to dst the regions that send r in copies of at most largest
// bytes.
func (r Region) split(dst []Region, largest int64) []Region {
	if r.Linear() {
		for n := r.Bytes(); n > 0; n -= largest {
			dst = append(dst, linear(r.Offset, min(n, largest)))
			r.Offset += largest
		}
		return dst
	}
	n := r.rowsPerCopy(largest)
	for row := int64(0); row < r.Height; row += max(n, 1) {
		piece := Region{r.Offset + row*r.Pitch, r.Width, min(max(n, 1), r.Height-row), r.Pitch}
		if piece.Height == 1 {
			dst = linear(piece.Offset, piece.Width).split(dst, largest)
		} else {
			dst = append(dst, piece)
		}
	}
	return dst
}
