package sdma

import (
	"fmt"
	"math"
)

// MaxLinearBytes is the most that one COPY_LINEAR moves: its count has 30 bits.
const MaxLinearBytes = 1 << 30

// maxField is the most that a pitch, a width or a height can be: each is
// stored less one, in 32 bits.
const maxField = 1 << 32

// Window is one copy of Height rows of Width bytes. Row i is read at
// Src + i·SrcPitch and written at Dst + i·DstPitch; pitches are in bytes and at
// least Width where there is more than one row. A linear copy is one row.
type Window struct {
	Src, Dst           uint64
	SrcPitch, DstPitch int64
	Width, Height      int64
}

// Bytes is how many bytes the copy moves; it saturates at the largest int64.
func (w *Window) Bytes() int64 {
	if w.Height > 0 && w.Width > math.MaxInt64/w.Height {
		return math.MaxInt64
	}
	return w.Width * w.Height
}

// Contiguous reports whether the rows follow one another without a gap on both
// sides, so that the copy is one run of Bytes.
func (w *Window) Contiguous() bool {
	return w.Height == 1 || w.SrcPitch == w.Width && w.DstPitch == w.Width
}

// SrcSpan is the length in bytes of the source from its first row to the end of
// its last. It is exact for every window that a packet can hold.
func (w *Window) SrcSpan() int64 { return (w.Height-1)*w.SrcPitch + w.Width }

// DstSpan is SrcSpan for the destination.
func (w *Window) DstSpan() int64 { return (w.Height-1)*w.DstPitch + w.Width }

// check says which field no packet can hold, or which arithmetic leaves the
// address space.
func (w *Window) check() error {
	const all = maxField - 1
	if uint64(w.Width-1)|uint64(w.Height-1)|uint64(w.SrcPitch-1)|uint64(w.DstPitch-1) > all {
		return w.checkFields()
	}
	if w.Height == 1 {
		return nil
	}
	if err := w.checkSide("source", w.Src, w.SrcPitch); err != nil {
		return err
	}
	return w.checkSide("destination", w.Dst, w.DstPitch)
}

// checkFields names the first field that is not 1 to 2³².
func (w *Window) checkFields() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"width", w.Width}, {"height", w.Height}, {"source pitch", w.SrcPitch}, {"destination pitch", w.DstPitch},
	} {
		if f.value < 1 || f.value > maxField {
			return &FieldError{OpCopyWindow, f.name, fmt.Sprintf("%d", f.value), "1 to 2³²"}
		}
	}
	return nil
}

func (w *Window) checkSide(side string, addr uint64, pitch int64) error {
	if pitch < w.Width {
		return &FieldError{OpCopyWindow, side + " pitch", fmt.Sprintf("%d", pitch), fmt.Sprintf("at least the width of %d, so that rows do not overlap", w.Width)}
	}
	// (2³²−1)·2³² is the most that the rows before the last come to: it fits.
	before, width := uint64(w.Height-1)*uint64(pitch), uint64(w.Width)
	if before > math.MaxInt64-width || addr > math.MaxUint64-before-width {
		return &FieldError{OpCopyWindow, side, fmt.Sprintf("%d rows of pitch %d at %#x", w.Height, pitch, addr), "inside the address space"}
	}
	return nil
}
