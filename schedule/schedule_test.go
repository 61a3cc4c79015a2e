package schedule_test

import (
	"errors"
	"math"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidateNamesTheFirstChunkAndRegionThatAreWrong(t *testing.T) {
	good := schedule.Region{Offset: 16, Width: 8, Height: 4, Pitch: 32}
	for name, c := range map[string]struct {
		region schedule.Region
		kind   error
	}{
		"width 0":            {schedule.Region{Offset: 0, Width: 0, Height: 1}, schedule.ErrSize},
		"height 0":           {schedule.Region{Offset: 0, Width: 1, Height: 0}, schedule.ErrSize},
		"negative height":    {schedule.Region{Offset: 0, Width: 1, Height: -1}, schedule.ErrSize},
		"pitch below width":  {schedule.Region{Offset: 0, Width: 8, Height: 2, Pitch: 7}, schedule.ErrPitch},
		"pitch above limit":  {schedule.Region{Offset: 0, Width: 8, Height: 2, Pitch: schedule.LargestPitch + 1}, schedule.ErrPitch},
		"negative offset":    {schedule.Region{Offset: -1, Width: 8, Height: 1}, schedule.ErrBounds},
		"last byte outside":  {schedule.Region{Offset: 1<<40 - 7, Width: 8, Height: 1}, schedule.ErrBounds},
		"last row outside":   {schedule.Region{Offset: 1<<40 - 39, Width: 8, Height: 2, Pitch: 32}, schedule.ErrBounds},
		"end past 2^63":      {schedule.Region{Offset: math.MaxInt64, Width: math.MaxInt64, Height: math.MaxInt64, Pitch: math.MaxInt64}, schedule.ErrBounds},
		"long copy":          {schedule.Region{Offset: 0, Width: 1025, Height: 1}, schedule.ErrCopy},
		"long copy of rows":  {schedule.Region{Offset: 0, Width: 25, Height: 41, Pitch: 25}, schedule.ErrCopy},
		"long windowed copy": {schedule.Region{Offset: 0, Width: 25, Height: 41, Pitch: 26}, schedule.ErrCopy},
	} {
		t.Run(name, func(t *testing.T) {
			s := schedule.Schedule{
				{Writers: 1, Regions: []schedule.Region{good}},
				{Writers: 2, Regions: []schedule.Region{good, c.region, {}}},
				{},
			}
			err := s.Validate(1<<40, 1024)
			var e *schedule.Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Chunk != 1 || e.Region != 1 {
				t.Fatalf("got %v, want %v in chunk 1, region 1", err, c.kind)
			}
		})
	}
}

func TestAChunkHasRegionsAndWriters(t *testing.T) {
	region := []schedule.Region{{Width: 8, Height: 1}}
	for _, c := range []struct {
		chunk schedule.Chunk
		kind  error
	}{
		{schedule.Chunk{Regions: region, Writers: 0}, schedule.ErrWriters},
		{schedule.Chunk{Regions: region, Writers: -3}, schedule.ErrWriters},
		{schedule.Chunk{Writers: 1}, schedule.ErrSize},
	} {
		err := schedule.Schedule{{Regions: region, Writers: 1}, c.chunk}.Validate(8, 0)
		var e *schedule.Error
		if !errors.As(err, &e) || !errors.Is(err, c.kind) || e.Chunk != 1 || e.Region != -1 {
			t.Errorf("%+v: got %v, want %v in chunk 1", c.chunk, err, c.kind)
		}
	}
	if err := (schedule.Schedule{{Regions: region, Writers: 1}}).Validate(8, 0); err != nil {
		t.Error(err)
	}
	if err := (schedule.Schedule)(nil).Validate(0, 0); err != nil {
		t.Errorf("a rank that sends nothing: %v", err)
	}
}

func TestARegionKnowsItsBytesAndItsEnd(t *testing.T) {
	for _, c := range []struct {
		region     schedule.Region
		linear     bool
		bytes, end int64
	}{
		{schedule.Region{Offset: 10, Width: 5, Height: 1}, true, 5, 15},
		{schedule.Region{Offset: 10, Width: 5, Height: 3, Pitch: 5}, true, 15, 25},
		{schedule.Region{Offset: 10, Width: 5, Height: 3, Pitch: 8}, false, 15, 31},
		{schedule.Region{Offset: 10, Width: 1 << 32, Height: 1 << 32, Pitch: 1 << 33}, false, math.MaxInt64, math.MaxInt64},
	} {
		if c.region.Linear() != c.linear || c.region.Bytes() != c.bytes || c.region.End() != c.end {
			t.Errorf("%+v: linear %v, %d bytes, ends at %d", c.region, c.region.Linear(), c.region.Bytes(), c.region.End())
		}
	}
	s := schedule.Schedule{
		{Regions: []schedule.Region{{Width: 3, Height: 2, Pitch: 9}, {Width: 4, Height: 1}}},
		{Regions: []schedule.Region{{Width: 100, Height: 1}}},
	}
	if s.Regions() != 3 || s.Bytes() != 110 {
		t.Errorf("%d regions of %d bytes", s.Regions(), s.Bytes())
	}
}
