//go:build race || !amd64

package softengine

func copyRows(dst, src []byte, dstPitch, srcPitch, width, rows int64) {
	plainRows(dst, src, dstPitch, srcPitch, width, rows)
}
