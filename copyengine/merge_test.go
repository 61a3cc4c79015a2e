package copyengine

import (
	"fmt"
	"maps"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"pgregory.net/rapid"
)

// moved are the bytes that copies move, from where to where.
type moved map[uint64]uint64

func (m moved) row(src, dst uint64, width int64) error {
	for i := range uint64(width) {
		if _, twice := m[src+i]; twice {
			return fmt.Errorf("byte %d is moved twice", src+i)
		}
		m[src+i] = dst + i
	}
	return nil
}

func (m moved) copies(cs []Copy) error {
	for _, c := range cs {
		for y := range c.Height {
			if err := m.row(c.Src+uint64(y*c.SrcPitch), c.Dst+uint64(y*c.DstPitch), c.Width); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m moved) merged(lines []hip.CopyLine, windows []hip.CopyWindow) error {
	for _, l := range lines {
		if err := m.row(l.Src, l.Dst, l.Bytes); err != nil {
			return err
		}
	}
	for _, w := range windows {
		if w.SrcPitch < w.Width || w.DstPitch < w.Width || w.SrcHeight < w.Rows || w.DstHeight < w.Rows {
			return fmt.Errorf("a window that drivers refuse: %+v", w)
		}
		for z := range w.Slices {
			for y := range w.Rows {
				src, dst := (z*w.SrcHeight+y)*w.SrcPitch, (z*w.DstHeight+y)*w.DstPitch
				if err := m.row(w.Src+uint64(src), w.Dst+uint64(dst), w.Width); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// drawCopies are runs of copies that are alike, and single ones, that do not
// touch each other's bytes.
func drawCopies(t *rapid.T) (copies []Copy) {
	src, dst := uint64(1<<20), uint64(1<<30)
	for range rapid.IntRange(1, 6).Draw(t, "runs") {
		width := rapid.Int64Range(1, 9).Draw(t, "width")
		height := rapid.Int64Range(1, 4).Draw(t, "height")
		n := rapid.Int64Range(1, 9).Draw(t, "copies")
		pitch := func(side string) int64 {
			return rapid.SampledFrom([]int64{width, width + 1, 8 * width, 16 * width * n}).Draw(t, side+" pitch")
		}
		c := Copy{Width: width, Height: height, SrcPitch: pitch("src"), DstPitch: pitch("dst")}
		// Side by side, one below the other, or anyhow apart.
		step := func(side string, pitch int64) int64 {
			steps := []int64{height * pitch, (height + 2) * pitch, height*pitch + 5}
			if height == 1 {
				steps = append(steps, width, width+3)
			}
			if pitch >= 2*width*n {
				steps = append(steps, 2*width)
			}
			return rapid.SampledFrom(steps).Draw(t, side+" step")
		}
		ss, ds := step("src", c.SrcPitch), step("dst", c.DstPitch)
		for i := range n {
			c.Src, c.Dst = src+uint64(i*ss), dst+uint64(i*ds)
			copies = append(copies, c)
		}
		src += uint64(n*ss+(height+1)*c.SrcPitch) + 64
		dst += uint64(n*ds+(height+1)*c.DstPitch) + 64
	}
	return copies
}

func TestMergedCopiesMoveTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		copies := drawCopies(t)
		want, got := moved{}, moved{}
		if err := want.copies(copies); err != nil {
			t.Skip(err)
		}
		if err := got.merged(merge(copies)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(want, got) {
			t.Fatalf("%d bytes are moved, want %d", len(got), len(want))
		}
	})
}

func TestCopiesThatAreAlikeAndEquallyFarApartAreOneWindow(t *testing.T) {
	many := func(n int, c Copy, by uint64) (cs []Copy) {
		for i := range uint64(n) {
			k := c
			k.Src, k.Dst = 4096+i*by, 8192+i*by
			cs = append(cs, k)
		}
		return cs
	}
	for _, c := range []struct {
		name           string
		copies         []Copy
		lines, windows int
	}{
		{"windows one below the other", many(256, Copy{Width: 256, Height: 16, SrcPitch: 2048, DstPitch: 2048}, 16*2048), 0, 1},
		{"windows with rows between them", many(9, Copy{Width: 256, Height: 16, SrcPitch: 2048, DstPitch: 2048}, 20*2048), 0, 1},
		{"windows side by side", many(4, Copy{Width: 256, Height: 16, SrcPitch: 2048, DstPitch: 2048}, 512), 0, 1},
		{"windows at a distance that divides no row", many(3, Copy{Width: 256, Height: 16, SrcPitch: 2048, DstPitch: 2048}, 600), 0, 3},
		{"windows at a distance of no whole rows", many(3, Copy{Width: 8, Height: 2, SrcPitch: 64, DstPitch: 64}, 1000), 0, 3},
		{"lines", many(512, Copy{Width: 4096, Height: 1}, 8192), 0, 1},
		{"lines that touch", many(512, Copy{Width: 4096, Height: 1}, 4096), 0, 1},
		{"few lines", many(3, Copy{Width: 4096, Height: 1}, 8192), 3, 0},
		{"a window without gaps", many(1, Copy{Width: 64, Height: 9, SrcPitch: 64, DstPitch: 64}, 0), 1, 0},
	} {
		lines, windows := merge(c.copies)
		if len(lines) != c.lines || len(windows) != c.windows {
			t.Errorf("%s: %d lines and %d windows, want %d and %d", c.name, len(lines), len(windows), c.lines, c.windows)
		}
	}
}
