package softengine

import "github.com/triggeredplans/sluice/copyengine/sdma"

// pieceBytes is the most that is copied between two yields: a long copy cannot
// be preempted, and would stop the collector and with it the whole process.
const pieceBytes = 1 << 20

func (e *Engine) copy(w *sdma.Window) error {
	srcSpan, dstSpan := w.SrcSpan(), w.DstSpan()
	src, err := e.src.bytes(w.Src, srcSpan)
	if err != nil {
		return err
	}
	dst, err := e.dst.bytes(w.Dst, dstSpan)
	if err != nil {
		return err
	}
	if w.Contiguous() {
		err = e.move(dst, src)
	} else {
		err = e.moveRows(dst, src, w)
	}
	if err != nil {
		return err
	}
	e.counters.copies.Add(1)
	e.counters.bytes.Add(uint64(w.Bytes()))
	return nil
}

func (e *Engine) moveRows(dst, src []byte, w *sdma.Window) error {
	from, to := int64(0), int64(0)
	for left := w.Height; left > 0; {
		if w.Width >= int64(e.budget) { // a row, or what is left of the budget, needs a yield
			if err := e.move(dst[to:to+w.Width], src[from:from+w.Width]); err != nil {
				return err
			}
			from, to, left = from+w.SrcPitch, to+w.DstPitch, left-1
			continue
		}
		rows := min(left, (int64(e.budget)-1)/w.Width)
		copyRows(dst[to:], src[from:], w.DstPitch, w.SrcPitch, w.Width, rows)
		from, to = from+rows*w.SrcPitch, to+rows*w.DstPitch
		e.budget -= int(rows * w.Width)
		left -= rows
	}
	return nil
}

// move copies src, which is as long as dst, in pieces.
func (e *Engine) move(dst, src []byte) error {
	for len(src) >= e.budget {
		n := copy(dst, src[:e.budget])
		dst, src = dst[n:], src[n:]
		e.budget = pieceBytes
		e.yield()
		if e.stopping.Load() {
			return errStopped
		}
	}
	e.budget -= copy(dst, src)
	return nil
}
