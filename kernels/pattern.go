package kernels

import "encoding/binary"

// SeedOf is the seed of what a rank writes in a round. It differs for every
// rank and round, so stale or foreign bytes never pass for good ones.
func SeedOf(base uint64, rank int, round uint64) uint64 {
	return base + (uint64(rank)+1)*0x100000001B3 + round*0x9E3779B1
}

// FillPattern writes the pattern of seed into dst, whose first byte is at
// position pos. A byte depends on its position, so misplaced bytes are caught.
func FillPattern(dst []byte, seed, pos uint64) {
	for ; len(dst) > 0 && pos&7 != 0; pos++ {
		dst[0] = patternByte(seed, pos)
		dst = dst[1:]
	}
	for ; len(dst) >= 8; pos += 8 {
		binary.LittleEndian.PutUint64(dst, lane(seed, pos>>3))
		dst = dst[8:]
	}
	for i := range dst {
		dst[i] = patternByte(seed, pos+uint64(i))
	}
}

// CheckPattern counts the bytes of src, whose first is at position pos, that
// differ from the pattern of seed.
func CheckPattern(src []byte, seed, pos uint64) (wrong int) {
	for len(src) > 0 {
		if pos&7 == 0 && len(src) >= 8 && binary.LittleEndian.Uint64(src) == lane(seed, pos>>3) {
			src = src[8:]
			pos += 8
			continue
		}
		if src[0] != patternByte(seed, pos) {
			wrong++
		}
		src = src[1:]
		pos++
	}
	return wrong
}

// lane is the pattern's 8 bytes at position 8k, little-endian.
func lane(seed, k uint64) uint64 {
	x := k*0x9E3779B97F4A7C15 + seed*0xBF58476D1CE4E5B9
	x ^= x >> 29
	x *= 0x94D049BB133111EB
	x ^= x >> 32
	return x
}

func patternByte(seed, pos uint64) byte { return byte(lane(seed, pos>>3) >> (8 * (pos & 7))) }
