package kernels

import "github.com/triggeredplans/sluice/hip"

// Fill is the kernel
//
//	fill(handle, buffer, offset, width, height, pitch, base, chunk)
//
// The CTAs of the grid together write the region (offset, width, height and
// pitch in bytes) of the buffer with the pattern of SeedOf(base, rank, round);
// then every CTA marks the chunk, whose writers are the CTAs.
var Fill = builtin("fill", fill, "handle", "buffer", "offset", "width", "height", "pitch", "base", "chunk")

func fill(t *hip.Thread) {
	v := NewView(t, t.Arg(0))
	w, err := openWindow(t, t.Arg(1), Region{int64(t.Arg(2)), int64(t.Arg(3)), int64(t.Arg(4)), int64(t.Arg(5))})
	if err != nil {
		t.Fail(err)
	}
	w.fill(t.Block*t.Threads+t.Index, t.Blocks*t.Threads, SeedOf(t.Arg(6), v.Rank(), v.Round()))
	v.MarkReady(int(t.Arg(7)))
}
