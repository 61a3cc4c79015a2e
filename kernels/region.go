package kernels

import "github.com/triggeredplans/sluice/hip"

// Region is Height rows of Width bytes, Pitch bytes apart, the first at Offset
// from the start of a buffer. It has the fields of a schedule's region, which
// converts to it.
type Region struct {
	Offset, Width, Height, Pitch int64
}

// maxRegion bounds a region's fields and span, so that no arithmetic on them
// overflows.
const maxRegion = 1 << 40

// window is a region that a kernel can reach.
type window struct {
	bytes                []byte // from the first row's start to the last row's end
	pos                  uint64 // of the first byte, from the buffer's start
	width, height, pitch int64
}

// openWindow checks a region and holds its bytes until the thread ends. A
// region without bytes is an empty window. The error is a *RegionError.
func openWindow(t *hip.Thread, buffer uint64, r Region) (window, error) {
	for _, v := range []int64{r.Offset, r.Width, r.Height, r.Pitch} {
		if v < 0 || v > maxRegion {
			return window{}, &RegionError{Buffer: buffer, Region: r, Why: "each figure is 0 to 2^40"}
		}
	}
	if r.Width == 0 || r.Height == 0 {
		return window{}, nil
	}
	if r.Height > 1 && r.Pitch < r.Width {
		return window{}, &RegionError{Buffer: buffer, Region: r, Why: "the rows overlap; the pitch is at least the width"}
	}
	if r.Height > 1 && r.Height-1 > maxRegion/r.Pitch {
		return window{}, &RegionError{Buffer: buffer, Region: r, Why: "it spans more than 2^40 bytes"}
	}
	span := (r.Height-1)*r.Pitch + r.Width
	m, off, err := t.Resolve(buffer+uint64(r.Offset), span)
	if err != nil {
		return window{}, &RegionError{Buffer: buffer, Region: r, Why: "it is not in memory", Err: err}
	}
	return window{m.Bytes(off, span), uint64(r.Offset), r.Width, r.Height, r.Pitch}, nil
}

// sub is the part of w that starts at a row and a byte of it and has at most
// so many rows and bytes of each: edges are clipped.
func (w window) sub(row, col, rows, width int64) window {
	skip := row*w.pitch + col
	w.bytes = w.bytes[skip:]
	w.pos += uint64(skip)
	w.width, w.height = min(width, w.width-col), min(rows, w.height-row)
	return w
}

// share calls do for the pieces that the i-th of n equal workers has of w: the
// bytes of a row or a part of one, and the position of the first.
func (w window) share(i, n int, do func(piece []byte, pos uint64)) {
	each, rest := w.width*w.height/int64(n), w.width*w.height%int64(n)
	from := each*int64(i) + min(rest, int64(i))
	to := each*int64(i+1) + min(rest, int64(i+1))
	for from < to {
		row, col := from/w.width, from%w.width
		n, at := min(w.width-col, to-from), row*w.pitch+col
		do(w.bytes[at:at+n], w.pos+uint64(at))
		from += n
	}
}

// fill writes worker i's share of the pattern.
func (w window) fill(i, n int, seed uint64) {
	w.share(i, n, func(piece []byte, pos uint64) { FillPattern(piece, seed, pos) })
}

// check counts the bytes in worker i's share that differ from the pattern.
func (w window) check(i, n int, seed uint64) (wrong uint64) {
	w.share(i, n, func(piece []byte, pos uint64) { wrong += uint64(CheckPattern(piece, seed, pos)) })
	return wrong
}
