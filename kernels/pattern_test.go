package kernels_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
	"pgregory.net/rapid"
)

// The bytes were computed apart from this code; devices must produce the same.
func TestThePatternIsTheOneAllPlatformsWrite(t *testing.T) {
	for _, c := range []struct {
		base  uint64
		rank  int
		round uint64
		seed  uint64
		bytes string
		far   string // from position 2^43 on
	}{
		{0, 0, 1, 0x1009e377b64, "162fcac6305383b1a9d7fa7ca00d3f363bb5700e5b489648", "78268f055ee293b6"},
		{7, 3, 5, 0x40317156748, "662d8b30916f4fa0cc1776308069b692bdb8e45b00d41117", "4c1fe51cbb35e0cb"},
		{1<<64 - 1, 15, 1<<32 - 1, 0x9e3789b061c8a17e, "bd4920d75403ade0c171905c373d6a90a2d6e18e05566c7a", "0db18503e4a393b4"},
	} {
		if seed := kernels.SeedOf(c.base, c.rank, c.round); seed != c.seed {
			t.Errorf("SeedOf(%d, %d, %d) = %#x, want %#x", c.base, c.rank, c.round, seed, c.seed)
		}
		near, far := make([]byte, 24), make([]byte, 8)
		kernels.FillPattern(near, c.seed, 0)
		kernels.FillPattern(far, c.seed, 1<<43)
		if hex.EncodeToString(near) != c.bytes || hex.EncodeToString(far) != c.far {
			t.Errorf("seed %#x begins %x and has %x at 2^43", c.seed, near, far)
		}
	}
}

func TestAPatternWrittenInPiecesIsThePatternWrittenAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, pos := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "pos")
		whole := make([]byte, rapid.IntRange(0, 100).Draw(t, "n"))
		kernels.FillPattern(whole, seed, pos)
		pieces := make([]byte, len(whole))
		for at := 0; at < len(pieces); {
			n := rapid.IntRange(1, len(pieces)-at).Draw(t, "piece")
			kernels.FillPattern(pieces[at:at+n], seed, pos+uint64(at))
			at += n
		}
		if !bytes.Equal(whole, pieces) {
			t.Fatalf("at once %x, in pieces %x", whole, pieces)
		}
	})
}

func TestACheckCountsEachWrongByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, pos := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "pos")
		b := make([]byte, rapid.IntRange(1, 100).Draw(t, "n"))
		kernels.FillPattern(b, seed, pos)
		wrong := rapid.SliceOfDistinct(rapid.IntRange(0, len(b)-1), rapid.ID).Draw(t, "wrong")
		for _, i := range wrong {
			b[i] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
		}
		if n := kernels.CheckPattern(b, seed, pos); n != len(wrong) {
			t.Fatalf("%d wrong bytes are found, want %d", n, len(wrong))
		}
	})
}
