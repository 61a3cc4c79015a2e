package kernels_test

import (
	"math"
	"slices"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
	"pgregory.net/rapid"
)

func TestGroupsOfTileRowsAreWalkedColumnByColumn(t *testing.T) {
	want := []int{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, 12, 13, 14}
	var got []int
	for step := range 15 {
		got = append(got, kernels.TileOf(step, 5, 3, 2))
	}
	if !slices.Equal(got, want) {
		t.Errorf("5 × 3 tiles in groups of 2 rows go %v, want %v", got, want)
	}
}

func TestEveryTileIsOneStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(1, 20).Draw(t, "m"), rapid.IntRange(1, 20).Draw(t, "n")
		group := rapid.OneOf(rapid.IntRange(1, 25), rapid.Just(math.MaxInt)).Draw(t, "group")
		seen := make([]bool, m*n)
		for step := range m * n {
			tile := kernels.TileOf(step, m, n, group)
			if tile < 0 || tile >= m*n || seen[tile] {
				t.Fatalf("step %d is tile %d, outside or for the second time", step, tile)
			}
			if seen[tile] = true; group == 1 && tile != step {
				t.Fatalf("step %d is tile %d with groups of one row", step, tile)
			}
		}
	})
}

func TestWhatIsNoStepIsNoTile(t *testing.T) {
	for _, a := range [][4]int{{-1, 2, 2, 1}, {4, 2, 2, 1}, {0, 0, 2, 1}, {0, 2, 0, 1}, {0, 2, 2, 0}, {math.MaxInt, 2, 2, 2}, {0, -1, -1, -1}} {
		if tile := kernels.TileOf(a[0], a[1], a[2], a[3]); tile != -1 {
			t.Errorf("TileOf%v = %d, want -1", a, tile)
		}
	}
}
