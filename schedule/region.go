package schedule

import (
	"fmt"
	"math"
)

// Limits of one copy packet, from the field widths of SDMA 4.4.
const (
	// DefaultLargestCopy is the most bytes that one copy moves where nothing
	// smaller is asked for: a linear packet counts them in 30 bits.
	DefaultLargestCopy int64 = 1 << 30
	// LargestPitch is the most bytes from one row of a windowed copy to the
	// next: the packet holds pitch − 1 in 32 bits.
	LargestPitch int64 = 1 << 32
)

// Region is one copy: Height rows of Width bytes, each Pitch bytes after the
// one before it, the first at Offset bytes from the start of the buffer (the
// allocation that a tensor and its slices share). Pitch counts only where
// Height is above 1.
type Region struct{ Offset, Width, Height, Pitch int64 }

// Linear reports whether the region is one range of bytes, without gaps.
func (r Region) Linear() bool { return r.Height == 1 || r.Pitch == r.Width }

// Bytes is how many bytes the region moves, math.MaxInt64 if that is too large
// for an int64.
func (r Region) Bytes() int64 { return mul(r.Width, r.Height) }

// End is the offset after the region's last byte, math.MaxInt64 if that is too
// large for an int64.
func (r Region) End() int64 {
	return add(r.Offset, add(mul(r.Height-1, r.Pitch), r.Width))
}

// String shows the region's figures as errors do.
func (r Region) String() string {
	if r.Linear() {
		return fmt.Sprintf("%d bytes at offset %d", r.Bytes(), r.Offset)
	}
	return fmt.Sprintf("%d rows of %d bytes, %d apart, at offset %d", r.Height, r.Width, r.Pitch, r.Offset)
}

// linear is a region of n bytes without gaps.
func linear(offset, n int64) Region { return Region{offset, n, 1, n} }

// mul and add keep to math.MaxInt64 what would pass it, so that no comparison
// with a limit is fooled by a sum that wrapped. Their operands are ≥ 0; what a
// negative one gives has been refused before.
func mul(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func add(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// ceil is the quotient rounded up, for a ≥ 1 and b ≥ 1.
func ceil(a, b int64) int64 { return (a-1)/b + 1 }
