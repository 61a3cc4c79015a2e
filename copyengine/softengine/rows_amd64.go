//go:build !race

package softengine

import "unsafe"

const (
	lineBytes = 64 // of the cache
	// Smaller windows are likely to be read soon, and stay in the cache; rows of
	// a few lines are no faster when streamed.
	streamBytes = 32 << 10
	streamWidth = 4 * lineBytes
	// What is fetched ahead must be on its way for as long as memory takes.
	aheadBytes = 4 << 10
)

// copyRows is plainRows, except that it streams whole lines of large windows:
// Go's copy does that from 1 MiB on, and has the processor read every line of
// the destination before it is written below that.
func copyRows(dst, src []byte, dstPitch, srcPitch, width, rows int64) {
	to := uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	if width*rows < streamBytes || width < streamWidth || (int64(to)|dstPitch|width)%lineBytes != 0 {
		plainRows(dst, src, dstPitch, srcPitch, width, rows)
		return
	}
	dst, src = dst[:(rows-1)*dstPitch+width], src[:(rows-1)*srcPitch+width] // all that is reached
	streamRows(&dst[0], &src[0], dstPitch, srcPitch, width, rows, (aheadBytes+width-1)/width)
}

// streamRows copies at least one row of at least one line, and fetches rows so
// many ahead. dst, its pitch and the width are multiples of a line.
//
//go:noescape
func streamRows(dst, src *byte, dstPitch, srcPitch, width, rows, ahead int64)
