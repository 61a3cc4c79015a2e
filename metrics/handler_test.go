package metrics

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// page is what the handler serves for a query.
func page(t *testing.T, w *rank.World, query string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	Handler(w).ServeHTTP(rec, httptest.NewRequest("GET", Path+query, nil))
	if rec.Code != 200 {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// pageJSON is the same as a program reads it.
func pageJSON(t *testing.T, w *rank.World) (v view) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(page(t, w, "?format=json")))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestJSONAndPageSayTheSameAsATimeout(t *testing.T) {
	s := newShow(t, 2, prepare, stick, giveUp)
	for range 3 {
		s.next(t)
	}
	v := pageJSON(t, s.World)
	if len(v.Plans) != 1 || len(v.Queues) != 2 || len(v.Ranks) != 2 || v.Closed {
		t.Fatalf("there are %d plans, %d queues and %d ranks", len(v.Plans), len(v.Queues), len(v.Ranks))
	}
	p := v.Plans[0]
	failed := p.Ranks[1]
	if failed.State != "FAILED" || failed.Marked != chunksPerRank-1 || failed.Delivered != 2 || len(p.Short) != 2 {
		t.Errorf("rank 1 is %+v, short is %q", failed, p.Short)
	}
	html := regexp.MustCompile(`&#\d+;`).ReplaceAllString(page(t, s.World, ""), "?")
	for _, short := range p.Short {
		if !strings.Contains(failed.Error, short) || !strings.Contains(html, short) {
			t.Errorf("%q is not both in the error %q and on the page", short, failed.Error)
		}
	}
	for _, c := range p.Chunks {
		want := "arrived"
		switch c.Chunk {
		case heldBack:
			want = "waiting"
		case heldBack + 1:
			want = "marked"
		}
		if at := c.At[0]; at.State != want || at.Late != (want != "arrived") || at.Rank == c.Rank {
			t.Errorf("chunk %d of rank %d: %+v, want %s", c.Chunk, c.Rank, at, want)
		}
	}
	if q := v.Queues[1]; len(q.Holders) != 1 || q.Prepared != 336 || q.Copies != 2 || q.Bytes != 2*rowBytes {
		t.Errorf("queue %+v", q)
	}
}

func TestTheOrdinaryIsNeitherLateNorInAList(t *testing.T) {
	s := newShow(t, 2, prepare, stick, unstick)
	s.next(t)
	if p := pageJSON(t, s.World).Plans[0]; len(p.Short) != 0 || p.Chunks[0].At[0].Late || p.Ranks[0].State != "PREPARED" {
		t.Errorf("a plan that is prepared is shown as %+v", p)
	}
	s.next(t)
	s.next(t)
	if p := pageJSON(t, s.World).Plans[0]; len(p.Short) != 0 || p.Ranks[1].Delivered != chunksPerRank || p.Ranks[1].State != "DONE" {
		t.Errorf("a round that is done is shown as %+v", p)
	}
}

func TestAClosedWorldHasAPage(t *testing.T) {
	s := newShow(t, 2, prepare, stick, giveUp, closePlan)
	for range 4 {
		s.next(t)
	}
	s.done <- <-s.done
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := pageJSON(t, s.World)
	if !v.Closed || len(v.Plans) != 0 || len(v.Queues) != 0 || v.Ranks[0].Timeouts != 1 {
		t.Errorf("it is shown as %+v", v)
	}
	if !strings.Contains(page(t, s.World, ""), "The world is closed.") {
		t.Error("the page does not say that the world is closed")
	}
}

func TestOfManyChunksThoseAreDrawnThatHaveNotArrived(t *testing.T) {
	p := plan.Snapshot{Plan: "p", Round: 1, Ranks: []plan.Part{{State: plan.Started, Own: 1000}, {State: plan.Started}}}
	for c := range 1000 {
		at := []plan.Progress{plan.Marked, plan.Arrived}
		marks := uint64(1)
		if c >= 600 {
			at, marks = []plan.Progress{plan.Waiting, plan.Waiting}, 0
		}
		p.Chunks = append(p.Chunks, plan.Chunk{Marks: marks, Writers: 1, At: at})
	}
	for _, c := range []struct{ from, before, after int }{{600, 600, 144}, {900, 744, 0}, {0, 0, 744}} {
		for i := range p.Chunks {
			p.Chunks[i].Marks, p.Chunks[i].At[1] = 1, plan.Arrived
			if i >= c.from {
				p.Chunks[i].Marks, p.Chunks[i].At[1] = 0, plan.Waiting
			}
		}
		m := newPlanView(&p).Matrices()
		if len(m) != 1 || m[0].Before != c.before || m[0].After != c.after || len(m[0].Rows) != 2 {
			t.Fatalf("chunks from %d on are short: %d matrices, the first leaves out %d and %d", c.from, len(m), m[0].Before, m[0].After)
		}
		first := m[0].Rows[1].Cells[0]
		if len(m[0].Rows[1].Cells) != maxColumns || first.Chunk != c.before {
			t.Errorf("%d squares are drawn from chunk %d on", len(m[0].Rows[1].Cells), first.Chunk)
		}
	}
}

func TestTheHandlerOnlyReadsAndAnswersOddRequestsWithAnError(t *testing.T) {
	s := newShow(t, 2, prepare)
	s.next(t)
	h := Handler(s.World)
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", Path, 200}, {"HEAD", Path, 200}, {"GET", Path + "?format=json", 200}, {"GET", Path + "?format=html&refresh=0", 200},
		{"POST", Path, 405}, {"DELETE", Path, 405}, {"PUT", Path + "?format=json", 405},
		{"GET", Path + "?format=xml", 400}, {"GET", Path + "?refresh=-1", 400}, {"GET", Path + "?refresh=3601", 400},
		{"GET", Path + "?refresh=1;url=http://elsewhere", 400}, {"GET", Path + "?refresh=1e3", 400}, {"GET", Path + "?format=%zz", 400},
		{"GET", Path + "?refresh=%22%3E%3Cscript%3E", 400}, {"GET", Path + "?x=" + strings.Repeat("y", 1<<16), 200},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(c.method, c.target, strings.NewReader("body")))
		if rec.Code != c.status {
			t.Errorf("%s %.60s: status %d, want %d", c.method, c.target, rec.Code, c.status)
		}
		if strings.Contains(rec.Body.String(), "<script") || rec.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %.60s: header %v, body %.200s", c.method, c.target, rec.Header(), rec.Body)
		}
		if allow := rec.Header().Get("Allow"); (c.status == http.StatusMethodNotAllowed) != (allow == "GET, HEAD") {
			t.Errorf("%s %.60s: allows %q", c.method, c.target, allow)
		}
	}
}
