package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// secret is what ranks keep in their tensors.
const secret = "SECRET-OF-A-TENSOR "

// keep fills the rank's tensor with the secret.
func keep(_ context.Context, a *actor) error {
	b := bytes.Repeat([]byte(secret), int(a.out.Size())/len(secret)+1)
	return heap.Write(a.out, b[:a.out.Size()])
}

// serveMetrics is what a program serves for Prometheus.
func serveMetrics(t testing.TB, w *rank.World) http.Handler {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := reg.Register(NewCollector(w)); err != nil {
		t.Fatal(err)
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

// TestNoHandlerShowsWhatIsInMemory looks while a round with the secret is under
// way, while it is stuck, and when it has failed.
func TestNoHandlerShowsWhatIsInMemory(t *testing.T) {
	s := newShow(t, 2, prepare, keep, stick, giveUp)
	h := Handler(s.World)
	for range 4 {
		s.next(t)
		for name, get := range map[string]struct {
			h      http.Handler
			target string
		}{"page": {h, Path}, "JSON": {h, Path + "?format=json"}, "metrics": {serveMetrics(t, s.World), "/metrics"}} {
			rec := httptest.NewRecorder()
			get.h.ServeHTTP(rec, httptest.NewRequest("GET", get.target, nil))
			if rec.Code != 200 || rec.Body.Len() == 0 {
				t.Errorf("%s: status %d, %d bytes", name, rec.Code, rec.Body.Len())
			}
			if strings.Contains(rec.Body.String(), secret[:6]) {
				t.Errorf("the %s has what a tensor holds:\n%s", name, rec.Body)
			}
		}
	}
}

// FuzzHandler sends requests of any method with any query and body: each gets
// an answer that fits, shows nothing of memory and changes nothing.
func FuzzHandler(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "", ""}, {"HEAD", "format=json", ""}, {"GET", "format=json&refresh=0", ""}, {"POST", "format=json", "{}"},
		{"GET", "refresh=3601", ""}, {"GET", "refresh=%zz", ""}, {"GET", "refresh=1;format=json", ""}, {"TRACE", "format=<script>", "x"},
		{"GET", "format=html&format=json&refresh=9223372036854775808", ""}, {"PUT", "\x00\xff", "\x00"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	s := newShow(f, 2, prepare, keep, stick)
	for range 3 {
		s.next(f)
	}
	h := Handler(s.World)
	before := plan.Observe(s.World).Plans
	f.Fuzz(func(t *testing.T, method, query, body string) {
		r := httptest.NewRequest("GET", Path, strings.NewReader(body))
		r.Method, r.URL.RawQuery = method, query
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		reads := method == http.MethodGet || method == http.MethodHead
		switch {
		case reads && rec.Code != 200 && rec.Code != 400, !reads && rec.Code != http.StatusMethodNotAllowed:
			t.Errorf("status %d", rec.Code)
		case rec.Code == 200 && rec.Header().Get("Content-Type") == "application/json" && !json.Valid(rec.Body.Bytes()):
			t.Errorf("no JSON: %s", rec.Body)
		}
		if text := rec.Body.String(); strings.Contains(text, secret[:6]) || strings.Contains(text, "<script") || rec.Code != 200 && len(text) > 200 {
			t.Errorf("the answer is %.500s", text)
		}
		now := plan.Observe(s.World).Plans
		if len(now) != 1 || now[0].Round != before[0].Round || now[0].Ranks[0].State != before[0].Ranks[0].State {
			t.Errorf("the world has changed: %+v", now)
		}
	})
}
