package schedule_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/schedule"
)

// sends says, for each byte of a small buffer, whether s sends it.
func sends(s schedule.Schedule, buffer int) []bool {
	all := make([]bool, buffer)
	for _, c := range s {
		for _, b := range offsets(c.Regions...) {
			all[b] = true
		}
	}
	return all
}

type fatal interface {
	Helper()
	Fatalf(string, ...any)
}

// agree compares Overlap with a look at every byte.
func agree(t fatal, a, b schedule.Schedule, buffer int) {
	t.Helper()
	inA, inB := sends(a, buffer), sends(b, buffer)
	want := false
	for i := range inA {
		want = want || inA[i] && inB[i]
	}
	if s, ok := schedule.OverlapInBatches(a, b, 3); ok != want {
		t.Fatalf("Overlap(%v, %v) in batches of 3 = %+v, %v; the bytes say %v", a, b, s, ok, want)
	}
	s, ok := schedule.Overlap(a, b)
	if ok != want || ok != (s != nil) {
		t.Fatalf("Overlap(%v, %v) = %+v, %v; the bytes say %v", a, b, s, ok, want)
	}
	if !ok {
		return
	}
	ra, rb := a[s.ChunkA].Regions[s.RegionA], b[s.ChunkB].Regions[s.RegionB]
	inA, inB = sends(schedule.Schedule{{Regions: []schedule.Region{ra}}}, buffer), sends(schedule.Schedule{{Regions: []schedule.Region{rb}}}, buffer)
	if s.Lo >= s.Hi {
		t.Fatalf("Overlap(%v, %v) names no bytes: %+v", a, b, s)
	}
	for i := s.Lo; i < s.Hi; i++ {
		if !inA[i] || !inB[i] {
			t.Fatalf("Overlap(%v, %v) = %+v, but byte %d is not in both regions", a, b, s, i)
		}
	}
}

func drawSchedule(t *rapid.T, buffer int64, pitches []int64) schedule.Schedule {
	var s schedule.Schedule
	for range rapid.IntRange(0, 4).Draw(t, "chunks") {
		c := schedule.Chunk{Writers: 1}
		for range rapid.IntRange(1, 4).Draw(t, "regions") {
			r := schedule.Region{Height: rapid.Int64Range(1, 6).Draw(t, "height"), Pitch: rapid.SampledFrom(pitches).Draw(t, "pitch")}
			r.Width = rapid.Int64Range(1, r.Pitch).Draw(t, "width")
			r.Offset = rapid.Int64Range(0, buffer-(r.Height-1)*r.Pitch-r.Width).Draw(t, "offset")
			c.Regions = append(c.Regions, r)
		}
		s = append(s, c)
	}
	return s
}

func TestOverlapFindsExactlyWhatALookAtEveryByteFinds(t *testing.T) {
	const buffer = 400
	for name, pitches := range map[string][]int64{"one pitch": {16}, "many pitches": {3, 16, 16, 16, 24, 32}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, b := drawSchedule(t, buffer, pitches), drawSchedule(t, buffer, pitches)
				if err := errors.Join(a.Validate(buffer, 0), b.Validate(buffer, 0)); err != nil {
					t.Fatal(err)
				}
				agree(t, a, b, buffer)
			})
		})
	}
}

func TestOverlapNamesTheBytesThatTwoWholeBuffersShare(t *testing.T) {
	w := schedule.Window{Rows: 16, Cols: 8, Elem: 2, Pitch: 16}
	a, err := schedule.Whole(w, 1, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := schedule.Chunks(w, 4, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := schedule.Overlap(a, b[2:])
	if want := (schedule.Shared{Lo: 128, Hi: 192}); !ok || *s != want {
		t.Fatalf("got %+v, %v; want %+v", s, ok, want)
	}
}

func TestOverlapLooksOnPastWindowsThatOnlyTouch(t *testing.T) {
	window := func(offset, width, rows int64) schedule.Region {
		return schedule.Region{Offset: offset, Width: width, Height: rows, Pitch: 100}
	}
	// b's first touches a's first below, its second beside, its third meets it.
	a := schedule.Schedule{{Writers: 1, Regions: []schedule.Region{window(0, 10, 2), window(1000, 10, 4)}}}
	b := schedule.Schedule{
		{Writers: 1, Regions: []schedule.Region{window(200, 10, 2), window(1010, 10, 4)}},
		{Writers: 1, Regions: []schedule.Region{window(1309, 8, 3)}},
	}
	s, ok := schedule.Overlap(a, b[:1])
	if ok {
		t.Fatalf("found %+v", s)
	}
	s, ok = schedule.Overlap(a, b)
	if want := (schedule.Shared{RegionA: 1, ChunkB: 1, Lo: 1309, Hi: 1310}); !ok || *s != want {
		t.Fatalf("got %+v, %v; want %+v", s, ok, want)
	}
	s, ok = schedule.Overlap(b, a)
	if want := (schedule.Shared{ChunkA: 1, RegionB: 1, Lo: 1309, Hi: 1310}); !ok || *s != want {
		t.Fatalf("got %+v, %v; want %+v", s, ok, want)
	}
}

// columns is rank's share of the columns of one large tensor, tile by tile.
func columns(tb testing.TB, rank, ranks int, rows, cols int) schedule.Schedule {
	tb.Helper()
	w := schedule.Window{Offset: int64(rank * cols), Rows: rows, Cols: cols, Elem: 1, Pitch: int64(ranks * cols)}
	s, err := schedule.TileChunks(w, schedule.Tile{Rows: 128, Cols: 128}, 1, schedule.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestOverlapOfTensOfThousandsOfWindowsIsQuick(t *testing.T) {
	// Two ranks that take every other column of tiles: neither the extents nor
	// the bounding boxes of their windows tell them apart.
	all := columns(t, 0, 1, 128*250, 128*250)
	var a, b schedule.Schedule
	for i, c := range all {
		if i%2 == 0 {
			a = append(a, c)
		} else {
			b = append(b, c)
		}
	}
	if len(a) < 30_000 || len(b) < 30_000 {
		t.Fatalf("only %d and %d windows", len(a), len(b))
	}
	start := time.Now()
	if s, ok := schedule.Overlap(a, b); ok {
		t.Fatalf("found %+v", s)
	}
	b = append(b, schedule.Chunk{Writers: 1, Regions: []schedule.Region{a[20_000].Regions[0]}})
	s, ok := schedule.Overlap(a, b)
	if !ok || s.ChunkA != 20_000 || s.ChunkB != len(b)-1 {
		t.Fatalf("got %+v, %v", s, ok)
	}
	// Comparing each with each would take minutes; the limit is far above what
	// this takes under the race detector on a busy machine.
	if d := time.Since(start); d > 30*time.Second {
		t.Fatalf("took %v", d)
	}
}

func TestOverlapOfFarApartAndHugeRegionsDoesNotOverflow(t *testing.T) {
	const top = math.MaxInt64 - 1
	one := func(r schedule.Region) schedule.Schedule {
		return schedule.Schedule{{Writers: 1, Regions: []schedule.Region{r}}}
	}
	last := one(schedule.Region{Offset: top - 64, Width: 64, Height: 1})
	rows := one(schedule.Region{Offset: top - 10*schedule.LargestPitch, Width: 64, Height: 10, Pitch: schedule.LargestPitch})
	tail := one(schedule.Region{Offset: top - schedule.LargestPitch + 63, Width: 2, Height: 1})
	if s, ok := schedule.Overlap(last, rows); ok {
		t.Fatalf("found %+v", s)
	}
	if s, ok := schedule.Overlap(rows, tail); !ok || s.Lo != top-schedule.LargestPitch+63 || s.Hi != s.Lo+1 {
		t.Fatalf("got %+v, %v", s, ok)
	}
	for _, r := range []schedule.Region{{}, {Offset: -4, Width: 8, Height: 1}, {Width: 8, Height: 2, Pitch: 4}, {Width: math.MaxInt64, Height: math.MaxInt64, Pitch: math.MaxInt64}} {
		if s, ok := schedule.Overlap(one(r), one(r)); ok {
			t.Fatalf("%+v, which is no region, shares %+v", r, s)
		}
	}
}

// FuzzValidateAndOverlap reads two schedules from bytes. Whatever they are,
// nothing may panic; what Validate lets pass lies in the buffer, and then
// Overlap agrees with a look at every byte.
func FuzzValidateAndOverlap(f *testing.F) {
	seed := func(values ...uint16) []byte {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	f.Add(seed(0, 16, 2, 32, 1), seed(16, 16, 2, 32, 1))
	f.Add(seed(0, 16, 2, 32, 1, 8, 100, 1, 0, 0), seed(500, 6, 3, 6, 1))
	f.Add(seed(65535, 65535, 65535, 65535, 1), seed(0, 0, 0, 0, 0))
	parse := func(b []byte) schedule.Schedule {
		var s schedule.Schedule
		for ; len(b) >= 10 && len(s) < 32; b = b[10:] {
			v := func(i int) int64 { return int64(int16(binary.LittleEndian.Uint16(b[2*i:]))) }
			r := schedule.Region{Offset: v(0), Width: v(1), Height: v(2), Pitch: v(3)}
			if v(4)&2 != 0 { // figures near the ends of an int64
				r.Offset, r.Pitch = r.Offset<<48, r.Pitch<<40
			}
			s = append(s, schedule.Chunk{Regions: []schedule.Region{r}, Writers: int(v(4) & 1)})
		}
		return s
	}
	const buffer = 2048
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := parse(x), parse(y)
		errA, errB := a.Validate(buffer, 1024), b.Validate(buffer, 1024)
		s, ok := schedule.Overlap(a, b)
		if errA == nil && errB == nil {
			agree(t, a, b, buffer)
		} else if ok && s.Lo >= s.Hi {
			t.Fatalf("names no bytes: %+v", s)
		}
	})
}

func BenchmarkOverlapByColumns(b *testing.B) {
	x, y := columns(b, 0, 8, 128*200, 128*200), columns(b, 1, 8, 128*200, 128*200)
	for b.Loop() {
		if _, ok := schedule.Overlap(x, y); ok {
			b.Fatal("found bytes in common")
		}
	}
}

func ExampleOverlap() {
	// Both ranks were given the whole buffer instead of their own half of it.
	out := schedule.Window{Rows: 8, Cols: 16, Elem: 4, Pitch: 64}
	a, err := schedule.Chunks(out, 4, schedule.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if s, ok := schedule.Overlap(a, a); ok {
		fmt.Printf("chunk %d and chunk %d both send bytes [%d, %d)\n", s.ChunkA, s.ChunkB, s.Lo, s.Hi)
	}
	// Output: chunk 0 and chunk 0 both send bytes [0, 256)
}
