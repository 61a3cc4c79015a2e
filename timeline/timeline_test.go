package timeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// recorded is one round of two ranks with two chunks each: chunk i of a rank is
// marked 10 ms after the one before, its copy begins at once and takes 6 ms.
func recorded(number uint64) (rounds []Round) {
	for rank := range 2 {
		start := time.Duration(number) * 100 * ms
		r := Round{World: "w", Plan: "p", Rank: rank, Round: number, Started: start, Ended: start + 40*ms}
		for i := range 2 {
			marked := start + time.Duration(10*(i+1))*ms
			r.Chunks = append(r.Chunks, Chunk{ID: 2*rank + i, Bytes: 64, Marked: marked, Copies: []Copy{
				{Peer: 1 - rank, Began: marked, Ended: marked + 6*ms, Arrived: marked + 7*ms},
			}})
		}
		rounds = append(rounds, r)
	}
	return rounds
}

// traced is what a Recorder with these rounds writes.
func traced(t *testing.T, rounds ...Round) (events []event) {
	t.Helper()
	var rec Recorder
	for _, r := range rounds {
		rec.Add(r)
	}
	var b bytes.Buffer
	if err := rec.WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var file struct {
		DisplayTimeUnit string
		TraceEvents     []event
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil || file.DisplayTimeUnit != "ns" {
		t.Fatalf("unit %q, error %v", file.DisplayTimeUnit, err)
	}
	return file.TraceEvents
}

func TestATraceKeepsTheRulesOfItsFormat(t *testing.T) {
	events := traced(t, slices.Concat(recorded(1), recorded(2))...)
	type key struct{ pid, tid int }
	tracks := map[key][]event{}
	named := map[key]bool{}
	flows := map[string][]event{}
	for _, e := range events {
		k := key{e.PID, e.TID}
		switch e.Phase {
		case "M":
			named[k] = true
			if e.Args["name"] == nil && e.Args["sort_index"] == nil {
				t.Errorf("%+v names nothing", e)
			}
			continue
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				t.Errorf("%+v has no duration", e)
				continue
			}
			tracks[k] = append(tracks[k], e)
		case "s", "f":
			flows[e.ID] = append(flows[e.ID], e)
		case "i":
			if e.Scope != "t" {
				t.Errorf("%+v has no scope", e)
			}
		default:
			t.Errorf("an event of phase %q", e.Phase)
		}
		if !named[k] || e.Name == "" || e.TS < 0 || math.IsNaN(e.TS) {
			t.Errorf("%+v is on a track without a name, or at no time", e)
		}
	}
	if len(tracks) != 2*3 {
		t.Errorf("%d tracks have slices; each rank has rounds, a producer and copies", len(tracks))
	}
	for k, on := range tracks {
		slices.SortFunc(on, func(a, b event) int { return int(math.Copysign(1, a.TS-b.TS)) })
		for i := 1; i < len(on); i++ {
			if end := on[i-1].TS + *on[i-1].Dur; end > on[i].TS+1e-9 {
				t.Errorf("on track %v %q ends at %v, and %q begins at %v", k, on[i-1].Name, end, on[i].Name, on[i].TS)
			}
		}
	}
	if len(flows) != 8 {
		t.Errorf("%d arrows lead from marks to copies, there were 8 copies", len(flows))
	}
	for id, ends := range flows {
		if len(ends) != 2 || ends[0].Phase != "s" || ends[1].Phase != "f" || ends[1].Bind != "e" || ends[0].TS > ends[1].TS || ends[0].Cat != ends[1].Cat || ends[0].Name != ends[1].Name {
			t.Errorf("arrow %s is %+v", id, ends)
		}
	}
}

func TestATraceShowsEachChunksWay(t *testing.T) {
	at := func(events []event, phase, cat, name string) (times []string) {
		for _, e := range events {
			if e.Phase == phase && e.Cat == cat && e.Name == name {
				s := fmt.Sprint(e.TS)
				if e.Dur != nil {
					s += fmt.Sprintf("+%v", *e.Dur)
				}
				times = append(times, s)
			}
		}
		return times
	}
	events := traced(t, recorded(3)...)
	for _, c := range []struct{ phase, cat, name, want string }{
		{"X", "round", "round 3", "[300000+40000 300000+40000]"},
		{"X", "compute", "chunk 1", "[310000+10000]"},
		{"X", "copy", "chunk 1", "[320000+6000]"},
		{"i", "arrival", "chunk 1", "[327000]"},
	} {
		if got := fmt.Sprint(at(events, c.phase, c.cat, c.name)); got != c.want {
			t.Errorf("%s of %s is at %v, want %s", c.cat, c.name, got, c.want)
		}
	}
}

func TestAStuckRoundHasATraceToo(t *testing.T) {
	r := recorded(1)[0]
	r.Chunks[0].Copies[0].Ended, r.Chunks[0].Copies[0].Arrived = 0, 0
	r.Chunks[1] = Chunk{ID: 1, Copies: []Copy{{Peer: 1}}}
	var names []string
	for _, e := range traced(t, r) {
		if e.Phase == "X" {
			names = append(names, fmt.Sprintf("%s+%v", e.Name, *e.Dur))
		}
	}
	if want := []string{"round 1+40000", "chunk 0+10000", "chunk 0 (not ended)+30000"}; !slices.Equal(names, want) {
		t.Errorf("the trace has %q, want %q", names, want)
	}
}

func TestOverlapIsTheShareOfCopyingDuringComputing(t *testing.T) {
	// Chunks 0 and 2 are copied while 1 and 3 are computed, 6 of 10 ms; the
	// copies of 1 and 3 begin when nothing is computed any more.
	if got := Overlap(recorded(1)); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("half of the copying overlaps, Overlap is %v", got)
	}
	all := recorded(1)
	for i := range all {
		all[i].Chunks = all[i].Chunks[:1]
		all[i].Chunks = append(all[i].Chunks, Chunk{ID: 9, Marked: all[i].Started + 30*ms})
	}
	if got := Overlap(all); math.Abs(got-1) > 1e-9 {
		t.Errorf("all of the copying overlaps, Overlap is %v", got)
	}
	if got := Overlap(nil); got != 0 {
		t.Errorf("without rounds Overlap is %v", got)
	}
}

func TestWithoutAStartOnItsClockComputingBeginsWithTheFirstMark(t *testing.T) {
	r := recorded(1)[0]
	r.Started = 0
	r.Chunks[0], r.Chunks[1] = r.Chunks[1], r.Chunks[0] // marked out of order
	want := []Span{{0, 110 * ms, 110 * ms}, {1, 110 * ms, 120 * ms}}
	if got := r.Computed(); !slices.Equal(got, want) {
		t.Errorf("computed %v, want %v", got, want)
	}
}

func TestARecorderKeepsTheNewestRoundsUpToItsLimit(t *testing.T) {
	rec := Recorder{Limit: 9}
	for n := range uint64(20) {
		for _, r := range recorded(n + 1) {
			rec.Add(r)
		}
	}
	got := rec.Rounds()
	if len(got) != 4 || got[0].Round != 19 || got[0].Rank != 0 || got[3].Round != 20 || got[3].Rank != 1 || rec.Dropped() != 36 {
		t.Errorf("%d rounds are kept, of rounds %d to %d, and %d dropped; want rounds 19 and 20 of both ranks", len(got), got[0].Round, got[len(got)-1].Round, rec.Dropped())
	}
}
