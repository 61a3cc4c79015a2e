package softengine

// plainRows copies rows of width bytes, the pitches apart.
func plainRows(dst, src []byte, dstPitch, srcPitch, width, rows int64) {
	from, to := int64(0), int64(0)
	for range rows {
		copy(dst[to:to+width], src[from:from+width])
		from, to = from+srcPitch, to+dstPitch
	}
}
