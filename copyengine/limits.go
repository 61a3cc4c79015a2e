package copyengine

import "fmt"

// copyLimits is what one copy of an engine may be. Zero fields are no limits
// beyond the packets'.
type copyLimits struct {
	largest int64 // bytes of one copy
	window  int64 // of a window's pitch, width and height
}

// WindowError says that a window is beyond what a device's copy engines take.
type WindowError struct {
	Field      string // "width", "height", "source pitch" or "destination pitch"
	Got, Limit int64
}

func (e *WindowError) Error() string {
	return fmt.Sprintf("copyengine: a window's %s is %d; the device's copy engines take at most %d", e.Field, e.Got, e.Limit)
}

// split gives do the copy in pieces of at most the largest: whole rows as long
// as one has room, else parts of rows.
func (l copyLimits) split(c Copy, do func(Copy) error) error {
	if err := l.check(c); err != nil {
		return err
	}
	if l.largest == 0 || c.Width <= 0 || c.Height <= 0 || c.Width <= l.largest/c.Height {
		return do(c)
	}
	rows := max(l.largest/c.Width, 1)
	for c.Height > 0 {
		piece := c
		piece.Height = min(rows, c.Height)
		if err := l.splitRow(piece, do); err != nil {
			return err
		}
		c.Src += uint64(piece.Height * c.SrcPitch)
		c.Dst += uint64(piece.Height * c.DstPitch)
		c.Height -= piece.Height
	}
	return nil
}

// splitRow splits a copy that is too large because its only row is.
func (l copyLimits) splitRow(c Copy, do func(Copy) error) error {
	for c.Width > l.largest {
		piece := c
		piece.Width = l.largest
		if err := do(piece); err != nil {
			return err
		}
		c.Src += uint64(l.largest)
		c.Dst += uint64(l.largest)
		c.Width -= l.largest
	}
	return do(c)
}

func (l copyLimits) check(c Copy) error {
	if l.window == 0 || c.Height == 1 {
		return nil
	}
	for _, f := range []struct {
		name string
		v    int64
	}{{"width", c.Width}, {"height", c.Height}, {"source pitch", c.SrcPitch}, {"destination pitch", c.DstPitch}} {
		if f.v > l.window {
			return &WindowError{Field: f.name, Got: f.v, Limit: l.window}
		}
	}
	return nil
}
