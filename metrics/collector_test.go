package metrics

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/rank"
)

// scrape gets a world's metrics as Prometheus does, and parses the text.
func scrape(t testing.TB, w *rank.World) scraped {
	t.Helper()
	text := exposition(t, w)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the text cannot be parsed: %v\n%s", err, text)
	}
	return families
}

func exposition(t testing.TB, w *rank.World) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(w))
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(rec.Body)
	if err != nil || rec.Code != 200 {
		t.Fatalf("status %d, error %v: %s", rec.Code, err, body)
	}
	return string(body)
}

type scraped map[string]*dto.MetricFamily

// value is that of the one series with these labels, given as name=value.
func (s scraped) value(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	var found []*dto.Metric
	for _, m := range s[name].GetMetric() {
		if slices.ContainsFunc(labels, func(l string) bool {
			return !slices.ContainsFunc(m.Label, func(p *dto.LabelPair) bool { return l == p.GetName()+"="+p.GetValue() })
		}) {
			continue
		}
		found = append(found, m)
	}
	if len(found) != 1 {
		t.Fatalf("%d series of %s have the labels %v", len(found), name, labels)
	}
	switch m := found[0]; {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	default:
		return float64(m.Histogram.GetSampleCount())
	}
}

func TestTheCollectorExportsJustWhatItDescribesAndLintFindsNothing(t *testing.T) {
	s := newShow(t, 3, prepare, stick)
	s.next(t)
	s.next(t)
	families := scrape(t, s.World)
	for d := range described() {
		f := families["sluice_"+d.name]
		if f == nil {
			t.Errorf("sluice_%s is described and not exported", d.name)
			continue
		}
		if strings.ToLower(f.GetType().String()) != d.kind || f.GetHelp() != d.help {
			t.Errorf("sluice_%s is a %v with help %q", d.name, f.GetType(), f.GetHelp())
		}
		want := append(slices.Clone(d.labels), "world")
		slices.Sort(want)
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName())
			}
			if slices.Sort(labels); !slices.Equal(labels, want) {
				t.Errorf("sluice_%s has the labels %v, want %v", d.name, labels, want)
			}
		}
		delete(families, "sluice_"+d.name)
	}
	for name := range families {
		t.Errorf("%s is exported and not described", name)
	}
	problems, err := promlint.New(strings.NewReader(exposition(t, s.World))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, error %v", problems, err)
	}
}

func TestAStuckRoundShowsInTheFigures(t *testing.T) {
	s := newShow(t, 3, prepare, stick, unstick, again)
	s.next(t)
	m := scrape(t, s.World)
	queue, own := "queue=host:1→host:0", []string{"plan=plan 1 of " + s.Name(), "rank=1"}
	expect := func(want float64, name string, labels ...string) {
		t.Helper()
		if got := m.value(t, "sluice_"+name, labels...); got != want {
			t.Errorf("sluice_%s%v is %v, want %v", name, labels, got, want)
		}
	}
	const prepared = chunksPerRank * (24 + 28 + 32)
	expect(16<<10, "queue_ring_bytes", queue)
	expect(8<<10, "queue_limit_bytes", queue)
	expect(prepared, "queue_prepared_bytes", queue)
	expect(float64(prepared)/(8<<10), "queue_fill_ratio", queue)
	expect(1, "queue_plans", queue)
	expect(0, "queue_copies_total", queue)
	expect(1, "plan_state", append(own, "state=PREPARED")...)
	expect(0, "plan_waiting_seconds", own...)

	s.next(t)
	m = scrape(t, s.World)
	expect(2, "queue_copies_total", queue)
	expect(2*rowBytes, "queue_copied_bytes_total", queue)
	expect(prepared, "queue_prepared_bytes", queue)
	expect(1, "plan_round", own...)
	expect(chunksPerRank, "plan_chunks", own...)
	expect(chunksPerRank-1, "plan_chunks_marked", own...)
	expect(2, "plan_chunks_delivered", own...)
	expect(1, "plan_state", append(own, "state=STARTED")...)
	expect(0, "plan_state", append(own, "state=PREPARED")...)
	expect(2*chunksPerRank-1, "marks_total", "rank=1")
	if w := m.value(t, "sluice_plan_waiting_seconds", own...); w <= 0 {
		t.Errorf("the round has waited %v s", w)
	}
	expect(0, "plan_waiting_seconds", own[0], "rank=0")
	waits := m.value(t, "sluice_queue_gate_wait_seconds", queue)

	s.next(t)
	m = scrape(t, s.World)
	expect(0, "queue_prepared_bytes", queue)
	expect(prepared, "queue_prepared_peak_bytes", queue)
	expect(1, "rounds_total", "rank=1")
	expect(2*chunksPerRank, "marks_total", "rank=1")
	expect(1, "preparation_seconds")
	expect(3, "wait_seconds")
	expect(chunksPerRank*6, "delivery_seconds")
	if got := m.value(t, "sluice_queue_gate_wait_seconds", queue); got <= waits {
		t.Errorf("%v gates were waited at, before the last opened there were %v", got, waits)
	}

	s.next(t)
	m = scrape(t, s.World)
	expect(2, "plan_round", own...)
	expect(2, "preparation_seconds")
	expect(2*chunksPerRank, "queue_copies_total", queue)
	for _, kind := range []string{"capacity", "schedule", "rank", "other"} {
		expect(0, "failed_preparations_total", "kind="+kind)
	}
}

func TestTheSeriesOfAClosedPlanAndOfAClosedWorldAreGone(t *testing.T) {
	s := newShow(t, 2, prepare, stick, giveUp, closePlan)
	for range 4 {
		s.next(t)
	}
	m := scrape(t, s.World)
	for name := range m {
		if strings.HasPrefix(name, "sluice_plan_") {
			t.Errorf("%s is exported of a closed plan", name)
		}
	}
	if got := m.value(t, "sluice_wait_timeouts_total", "rank=1"); got != 1 {
		t.Errorf("rank 1 has %v timeouts, want 1", got)
	}
	if got := m.value(t, "sluice_marks_total", "rank=1"); got != 2*chunksPerRank-1 {
		t.Errorf("rank 1 made %v marks, want %v, though its plan is closed", got, 2*chunksPerRank-1)
	}
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	s.done <- nil
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := scrape(t, s.World); len(m) != 0 {
		t.Errorf("of a closed world there are %v", slices.Sorted(maps.Keys(m)))
	}
}

func TestCollectorsOfSeveralWorldsFitOneRegistry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for range 2 {
		s := newShow(t, 2, prepare)
		s.next(t)
		registry.MustRegister(NewCollector(s.World))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.Metric); f.GetName() == "sluice_queue_plans" && n != 4 {
			t.Errorf("%d queues are exported, there are 2 in each of 2 worlds", n)
		}
	}
}

func TestAWorldMayBeScrapedAtAnyTimeOfItsLife(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var scrapers sync.WaitGroup
	defer scrapers.Wait()
	defer cancel()
	for n := range 3 {
		w, err := rank.Open(ctx, rank.Config{Ranks: 3, HeapBytes: 1 << 20, Platform: "host"})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		scrapers.Go(func() {
			h := Handler(w)
			for i := 0; ctx.Err() == nil; i++ {
				scrape(t, w)
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", Path, nil))
				if i == 0 {
					close(started)
				}
			}
		})
		<-started
		err = w.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			for i := range 4 {
				a := &actor{Rank: r}
				if err := prepare(ctx, a); err != nil {
					return err
				}
				if err := stick(ctx, a); err != nil {
					return err
				}
				end := unstick
				if i%2 == n%2 {
					end = giveUp
				}
				if err := end(ctx, a); err != nil {
					return fmt.Errorf("plan %d: %w", i, err)
				}
				if err := a.plan.Close(ctx); err != nil {
					return err
				}
				for _, x := range []*heap.Tensor{a.out, a.program} {
					if err := r.Free(ctx, x); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
