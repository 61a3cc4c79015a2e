package schedule_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/schedule"
)

// offsets is every byte that the regions send, in order, once per copy of it.
func offsets(regions ...schedule.Region) []int64 {
	var all []int64
	for _, r := range regions {
		for row := range r.Height {
			for b := range r.Width {
				all = append(all, r.Offset+row*r.Pitch+b)
			}
		}
	}
	slices.Sort(all)
	return all
}

// tileBytes is every byte of one tile of w, in order.
func tileBytes(w schedule.Window, t schedule.Tile, tile int) []int64 {
	across := (w.Cols + t.Cols - 1) / t.Cols
	var all []int64
	for r := tile / across * t.Rows; r < min(w.Rows, (tile/across+1)*t.Rows); r++ {
		for c := tile % across * t.Cols; c < min(w.Cols, (tile%across+1)*t.Cols); c++ {
			for e := range w.Elem {
				all = append(all, w.Offset+int64(r)*w.Pitch+int64(c*w.Elem+e))
			}
		}
	}
	return all
}

func drawWindow(t *rapid.T) schedule.Window {
	w := schedule.Window{
		Offset: rapid.Int64Range(0, 50).Draw(t, "offset"),
		Rows:   rapid.IntRange(1, 12).Draw(t, "rows"),
		Cols:   rapid.IntRange(1, 12).Draw(t, "cols"),
		Elem:   rapid.IntRange(1, 3).Draw(t, "elem"),
	}
	w.Pitch = int64(w.Cols*w.Elem) + rapid.SampledFrom([]int64{0, 0, 1, 7}).Draw(t, "gap")
	return w
}

func TestEveryChunkSendsItsStepsTilesOnceAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		tile := schedule.Tile{Rows: rapid.IntRange(1, 14).Draw(t, "tile rows"), Cols: rapid.IntRange(1, 14).Draw(t, "tile cols")}
		tiles := ((w.Rows + tile.Rows - 1) / tile.Rows) * ((w.Cols + tile.Cols - 1) / tile.Cols)
		steps := rapid.IntRange(1, tiles+2).Draw(t, "steps")
		order := rapid.Permutation(slices.Collect(seq(tiles))).Draw(t, "order")
		o := schedule.Options{
			Order:       func(step int) int { return order[step] },
			LargestCopy: rapid.Int64Range(1, 80).Draw(t, "largest copy"),
			Writers:     rapid.IntRange(0, 3).Draw(t, "writers"),
		}
		s, err := schedule.TileChunks(w, tile, steps, o)
		if err != nil {
			t.Fatal(err)
		}
		end := w.Offset + int64(w.Rows-1)*w.Pitch + int64(w.Cols*w.Elem)
		if err := s.Validate(end, o.LargestCopy); err != nil {
			t.Fatal(err)
		}
		for chunk := range slices.Chunk(order, steps) {
			var want []int64
			for _, id := range chunk {
				want = append(want, tileBytes(w, tile, id)...)
			}
			slices.Sort(want)
			if got := offsets(s[0].Regions...); !slices.Equal(got, want) {
				t.Fatalf("the chunk of tiles %v sends\n%v, its tiles are\n%v", chunk, got, want)
			}
			if want := len(chunk) * max(o.Writers, 1); s[0].Writers != want {
				t.Fatalf("the chunk of tiles %v has %d writers, want %d", chunk, s[0].Writers, want)
			}
			s = s[1:]
		}
		if len(s) != 0 {
			t.Fatalf("%d chunks too many", len(s))
		}
	})
}

func TestMergingNeverTakesMoreCopiesThanTheTilesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		tile := schedule.Tile{Rows: rapid.IntRange(1, 5).Draw(t, "tile rows"), Cols: rapid.IntRange(1, 5).Draw(t, "tile cols")}
		o := schedule.Options{LargestCopy: rapid.Int64Range(1, 80).Draw(t, "largest copy")}
		alone, err := schedule.TileChunks(w, tile, 1, o)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := schedule.TileChunks(w, tile, rapid.IntRange(1, 20).Draw(t, "steps"), o)
		if err != nil {
			t.Fatal(err)
		}
		if merged.Regions() > alone.Regions() || merged.Bytes() != alone.Bytes() {
			t.Fatalf("merged: %d copies of %d bytes; tile by tile: %d copies of %d bytes",
				merged.Regions(), merged.Bytes(), alone.Regions(), alone.Bytes())
		}
	})
}

func seq(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestRowBlocksCoverTheWindowInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		rows := rapid.IntRange(1, 14).Draw(t, "rows per chunk")
		s, err := schedule.Chunks(w, rows, schedule.Options{LargestCopy: rapid.Int64Range(1, 80).Draw(t, "largest copy")})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range s {
			if got, want := offsets(c.Regions...), tileBytes(w, schedule.Tile{Rows: rows, Cols: w.Cols}, i); !slices.Equal(got, want) {
				t.Fatalf("chunk %d sends\n%v, want\n%v", i, got, want)
			}
		}
		if want := (w.Rows + rows - 1) / rows; len(s) != want {
			t.Fatalf("%d chunks, want %d", len(s), want)
		}
	})
}

func TestWholeIsOneChunkWithEveryByteOfTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		writers := rapid.IntRange(1, 9).Draw(t, "writers")
		s, err := schedule.Whole(w, writers, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(s) != 1 || s[0].Writers != writers || len(s[0].Regions) != 1 {
			t.Fatalf("want one chunk of one region with %d writers, got %+v", writers, s)
		}
		if got, want := offsets(s[0].Regions...), tileBytes(w, schedule.Tile{Rows: w.Rows, Cols: w.Cols}, 0); !slices.Equal(got, want) {
			t.Fatalf("sends\n%v, want\n%v", got, want)
		}
	})
}

func TestTheRegionsOfCommonProducers(t *testing.T) {
	type Region = schedule.Region
	rows16 := schedule.Window{Offset: 256, Rows: 16, Cols: 8, Elem: 2, Pitch: 16} // no gaps
	strided := schedule.Window{Offset: 64, Rows: 8, Cols: 12, Elem: 2, Pitch: 100}
	runDown := func(step int) int { return step%4*3 + step/4 } // 4×3 tiles, column by column
	for _, c := range []struct {
		name  string
		w     schedule.Window
		tile  schedule.Tile
		steps int
		o     schedule.Options
		want  []Region // of the first chunk
	}{
		{"a tile is a window", strided, schedule.Tile{Rows: 2, Cols: 4}, 1, schedule.Options{},
			[]Region{{64, 8, 2, 100}}},
		{"neighbours in a row band share a copy", strided, schedule.Tile{Rows: 2, Cols: 4}, 2, schedule.Options{},
			[]Region{{64, 16, 2, 100}}},
		{"a band and a tile are two copies", strided, schedule.Tile{Rows: 2, Cols: 4}, 4, schedule.Options{},
			[]Region{{64, 24, 2, 100}, {264, 8, 2, 100}}},
		{"two bands share a copy", strided, schedule.Tile{Rows: 2, Cols: 4}, 6, schedule.Options{},
			[]Region{{64, 24, 4, 100}}},
		{"a column of tiles shares a copy", strided, schedule.Tile{Rows: 2, Cols: 4}, 4, schedule.Options{Order: runDown},
			[]Region{{64, 8, 8, 100}}},
		{"a column and a half are two copies", strided, schedule.Tile{Rows: 2, Cols: 4}, 6, schedule.Options{Order: runDown},
			[]Region{{64, 16, 4, 100}, {464, 8, 4, 100}}},
		{"edge tiles are cut off", strided, schedule.Tile{Rows: 5, Cols: 7}, 1, schedule.Options{Order: func(s int) int { return 3 - s }},
			[]Region{{64 + 500 + 14, 10, 3, 100}}},
		{"bands without gaps are one range", rows16, schedule.Tile{Rows: 4, Cols: 8}, 2, schedule.Options{},
			[]Region{{256, 128, 1, 128}}},
		{"tiles that fill bands without gaps are one range", rows16, schedule.Tile{Rows: 4, Cols: 2}, 16, schedule.Options{},
			[]Region{{256, 256, 1, 256}}},
		{"a long range is split", rows16, schedule.Tile{Rows: 16, Cols: 8}, 1, schedule.Options{LargestCopy: 100},
			[]Region{{256, 100, 1, 100}, {356, 100, 1, 100}, {456, 56, 1, 56}}},
		{"a large window is split by rows", strided, schedule.Tile{Rows: 8, Cols: 12}, 1, schedule.Options{LargestCopy: 80},
			[]Region{{64, 24, 3, 100}, {364, 24, 3, 100}, {664, 24, 2, 100}}},
		{"a row too long for one copy is split", strided, schedule.Tile{Rows: 1, Cols: 12}, 1, schedule.Options{LargestCopy: 20},
			[]Region{{64, 20, 1, 20}, {84, 4, 1, 4}}},
		{"tiles stay apart where merging saves nothing", strided, schedule.Tile{Rows: 3, Cols: 4}, 2, schedule.Options{LargestCopy: 24},
			[]Region{{64, 8, 3, 100}, {72, 8, 3, 100}}},
		{"rows too far apart for one copy are copies", schedule.Window{Rows: 2, Cols: 3, Elem: 1, Pitch: schedule.LargestPitch + 1}, schedule.Tile{Rows: 2, Cols: 3}, 1, schedule.Options{},
			[]Region{{0, 3, 1, 3}, {schedule.LargestPitch + 1, 3, 1, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schedule.TileChunks(c.w, c.tile, c.steps, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s[0].Regions); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestRangesAreSplitAtOneGiBUnlessToldOtherwise(t *testing.T) {
	w := schedule.Window{Rows: 3 << 10, Cols: 1 << 20, Elem: 1, Pitch: 1 << 20}
	s, err := schedule.Whole(w, 1, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s[0].Regions) != 3 || s[0].Regions[2] != (schedule.Region{Offset: 2 << 30, Width: 1 << 30, Height: 1, Pitch: 1 << 30}) {
		t.Fatalf("3 GiB make %v", s[0].Regions)
	}
	if err := s.Validate(3<<30, 0); err != nil {
		t.Fatal(err)
	}
}

func TestBuildersRefuseWhatNoProducerMeans(t *testing.T) {
	w := schedule.Window{Offset: 8, Rows: 6, Cols: 4, Elem: 2, Pitch: 8}
	change := func(f func(*schedule.Window)) schedule.Window { c := w; f(&c); return c }
	tile := schedule.Tile{Rows: 2, Cols: 2}
	tiles := func(w schedule.Window, t schedule.Tile, steps int, o schedule.Options) error {
		_, err := schedule.TileChunks(w, t, steps, o)
		return err
	}
	order := func(tiles ...int) schedule.Options {
		return schedule.Options{Order: func(step int) int { return tiles[step] }}
	}
	_, noWriters := schedule.Whole(w, 0, schedule.Options{})
	_, noRows := schedule.Chunks(w, 0, schedule.Options{})
	for name, c := range map[string]struct {
		err  error
		kind error
	}{
		"no rows":              {tiles(change(func(w *schedule.Window) { w.Rows = 0 }), tile, 1, schedule.Options{}), schedule.ErrSize},
		"negative columns":     {tiles(change(func(w *schedule.Window) { w.Cols = -1 }), tile, 1, schedule.Options{}), schedule.ErrSize},
		"no element":           {tiles(change(func(w *schedule.Window) { w.Elem = 0 }), tile, 1, schedule.Options{}), schedule.ErrSize},
		"pitch below width":    {tiles(change(func(w *schedule.Window) { w.Pitch = 7 }), tile, 1, schedule.Options{}), schedule.ErrPitch},
		"negative offset":      {tiles(change(func(w *schedule.Window) { w.Offset = -8 }), tile, 1, schedule.Options{}), schedule.ErrBounds},
		"end past 2^63":        {tiles(change(func(w *schedule.Window) { w.Offset = math.MaxInt64 - 40 }), tile, 1, schedule.Options{}), schedule.ErrBounds},
		"rows past 2^63":       {tiles(change(func(w *schedule.Window) { w.Pitch = math.MaxInt64 / 2 }), tile, 1, schedule.Options{}), schedule.ErrBounds},
		"no tile rows":         {tiles(w, schedule.Tile{Rows: 0, Cols: 4}, 1, schedule.Options{}), schedule.ErrSize},
		"no tile columns":      {tiles(w, schedule.Tile{Rows: 4, Cols: 0}, 1, schedule.Options{}), schedule.ErrSize},
		"no steps":             {tiles(w, tile, 0, schedule.Options{}), schedule.ErrSize},
		"no rows per chunk":    {noRows, schedule.ErrSize},
		"too many tiles":       {tiles(schedule.Window{Rows: 1 << 20, Cols: 1 << 20, Elem: 1, Pitch: 1 << 20}, schedule.Tile{Rows: 1, Cols: 1}, 1, schedule.Options{}), schedule.ErrSize},
		"too many copies":      {tiles(schedule.Window{Rows: 1 << 20, Cols: 1 << 20, Elem: 1, Pitch: 1 << 20}, schedule.Tile{Rows: 1 << 20, Cols: 1 << 20}, 1, schedule.Options{LargestCopy: 1}), schedule.ErrSize},
		"no writers":           {noWriters, schedule.ErrWriters},
		"negative writers":     {tiles(w, tile, 1, schedule.Options{Writers: -1}), schedule.ErrWriters},
		"too many writers":     {tiles(w, tile, 2, schedule.Options{Writers: schedule.LargestWriters}), schedule.ErrWriters},
		"negative copy":        {tiles(w, tile, 1, schedule.Options{LargestCopy: -1}), schedule.ErrCopy},
		"a tile twice":         {tiles(w, tile, 2, order(0, 1, 2, 1, 4, 5)), schedule.ErrOrder},
		"a tile past the last": {tiles(w, tile, 2, order(0, 1, 2, 3, 4, 6)), schedule.ErrOrder},
		"a tile before 0":      {tiles(w, tile, 2, order(0, 1, 2, -1, 4, 5)), schedule.ErrOrder},
	} {
		t.Run(name, func(t *testing.T) {
			var e *schedule.Error
			if !errors.Is(c.err, c.kind) || !errors.As(c.err, &e) {
				t.Fatalf("got %v, want an *Error of %v", c.err, c.kind)
			}
		})
	}
	err := tiles(w, tile, 2, order(0, 1, 2, 1, 4, 5))
	if want := "schedule: chunk 1: the order gives tile 1 for step 1 and for step 3; each of the 6 tiles is written in one step"; err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func BenchmarkTileChunks(b *testing.B) {
	w := schedule.Window{Rows: 8192, Cols: 8192, Elem: 2, Pitch: 16384}
	order := rand.New(rand.NewSource(1)).Perm(64 * 64)
	for b.Loop() {
		if _, err := schedule.TileChunks(w, schedule.Tile{Rows: 128, Cols: 128}, 304, schedule.Options{Order: func(s int) int { return order[s] }}); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleTileChunks() {
	// A rank's 256 rows of a tensor with 1024 columns of 2 bytes, written by 4
	// programs in tiles of 128×128: each chunk is what the 4 finish together.
	mine := schedule.Window{Offset: 256 * 2048, Rows: 256, Cols: 1024, Elem: 2, Pitch: 2048}
	s, err := schedule.TileChunks(mine, schedule.Tile{Rows: 128, Cols: 128}, 4, schedule.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, c := range s {
		fmt.Println("chunk", i, "has", c.Writers, "writers:", c.Regions)
	}
	// Output:
	// chunk 0 has 4 writers: [128 rows of 1024 bytes, 2048 apart, at offset 524288]
	// chunk 1 has 4 writers: [128 rows of 1024 bytes, 2048 apart, at offset 525312]
	// chunk 2 has 4 writers: [128 rows of 1024 bytes, 2048 apart, at offset 786432]
	// chunk 3 has 4 writers: [128 rows of 1024 bytes, 2048 apart, at offset 787456]
}

func ExampleChunks() {
	mine := schedule.Window{Rows: 5, Cols: 8, Elem: 4, Pitch: 32}
	s, err := schedule.Chunks(mine, 2, schedule.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range s {
		fmt.Println(c.Regions)
	}
	// Output:
	// [64 bytes at offset 0]
	// [64 bytes at offset 64]
	// [32 bytes at offset 128]
}

func ExampleWhole() {
	// 8 programs write the rows together and each marks the chunk at its end.
	mine := schedule.Window{Offset: 4096, Rows: 16, Cols: 64, Elem: 4, Pitch: 256}
	s, err := schedule.Whole(mine, 8, schedule.Options{})
	fmt.Println(s, err)
	// Output: [{[4096 bytes at offset 4096] 8}] <nil>
}

func ExampleSchedule_Validate() {
	s := schedule.Schedule{{Writers: 1, Regions: []schedule.Region{
		{Offset: 0, Width: 64, Height: 1},
		{Offset: 1000, Width: 64, Height: 2, Pitch: 32},
	}}}
	err := s.Validate(4096, 0)
	fmt.Println(err)
	fmt.Println(errors.Is(err, schedule.ErrPitch))
	// Output:
	// schedule: chunk 0, region 1: 2 rows of 64 bytes, 32 apart, at offset 1000: rows overlap; the pitch must be at least the width
	// true
}
