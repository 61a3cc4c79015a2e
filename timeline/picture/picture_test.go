package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds is a round of a plan in a world of so many ranks.
func rounds(ranks, chunks int, plan string, number uint64) (all []timeline.Round) {
	for r := range ranks {
		round := timeline.Round{World: "w", Plan: plan, Rank: r, Round: number, Started: time.Duration(number) * time.Second}
		for c := range chunks {
			ch := timeline.Chunk{ID: r*chunks + c, Marked: round.Started + time.Duration(c+1)*10*time.Millisecond}
			for p := range ranks {
				if p != r {
					ch.Copies = append(ch.Copies, timeline.Copy{Peer: p, Began: ch.Marked, Ended: ch.Marked + 5*time.Millisecond, Arrived: ch.Marked + 6*time.Millisecond})
				}
			}
			round.Chunks = append(round.Chunks, ch)
		}
		round.Ended = round.Started + time.Second/2
		all = append(all, round)
	}
	return all
}

func TestAPictureHasARowForEachProducerAndQueue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.svg")
	if err := Save(file, rounds(3, 4, "plan 7", 5)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(text)))
	for err == nil {
		_, err = d.Token()
	}
	if err != io.EOF {
		t.Errorf("the file is no XML: %v", err)
	}
	for s, n := range map[string]int{
		">rank 0 computes<": 1, ">rank 2 computes<": 1, ">to rank 0<": 2, ">to rank 1<": 2, ">11<": 3,
		"Round 5 of plan 7: 75% of the copying": 1, ">computing a chunk<": 1, ">copying it<": 1, ">its arrival<": 1,
	} {
		if got := strings.Count(string(text), s); got != n {
			t.Errorf("%q is %d times in the picture, want %d", s, got, n)
		}
	}
}

func TestComputingAndCopyingHaveColoursOfTheirOwnInAPNG(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.png")
	if err := Save(file, rounds(2, 2, "p", 1)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	area := map[string]int{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			area[fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)]++
		}
	}
	for _, k := range []kind{computing, copying} {
		for chunk := range 2 {
			r, g, b, _ := k.color(chunk).RGBA()
			if n := area[fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)]; n < 200 {
				t.Errorf("%s %d covers %d pixels", k.name(), chunk, n)
			}
		}
	}
}

func TestLastPicksTheLastWholeRoundOfTheLargestPlan(t *testing.T) {
	var recorded []timeline.Round
	for n := range uint64(3) {
		recorded = append(recorded, rounds(2, 4, "small", 10+n)...)
		recorded = append(recorded, rounds(2, 9, "large", 1+n)...)
	}
	recorded = recorded[:len(recorded)-1] // rank 1 has not recorded the last one
	got := Last(recorded)
	if len(got) != 2 || got[0].Plan != "large" || got[0].Round != 2 {
		t.Errorf("picked %d rounds: %+v", len(got), got)
	}
	if Last(nil) != nil {
		t.Error("something was picked of nothing")
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	dir := t.TempDir()
	var format *FormatError
	for _, name := range []string{"t.gif", "t", "t.svg.gz"} {
		if err := Save(filepath.Join(dir, name), rounds(2, 1, "p", 1)); !errors.As(err, &format) {
			t.Errorf("%s: error %v, want a FormatError", name, err)
		}
	}
	empty := rounds(2, 1, "p", 1)
	for i := range empty {
		empty[i].Chunks[0].Marked = 0
	}
	if err := Save(filepath.Join(dir, "t.svg"), empty); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to draw: error %v", err)
	}
	if err := Save(filepath.Join(dir, "no", "t.svg"), rounds(2, 1, "p", 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such folder: error %v", err)
	}
}

func TestAWorldOfOneRankHasAPicture(t *testing.T) {
	if err := Save(filepath.Join(t.TempDir(), "t.svg"), rounds(1, 3, "p", 1)); err != nil {
		t.Error(err)
	}
}
