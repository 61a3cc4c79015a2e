package metrics_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triggeredplans/sluice/metrics"
	"github.com/triggeredplans/sluice/rank"
)

// A program registers a collector for each world. When the world is closed it
// exports nothing any more, and may be unregistered.
func ExampleNewCollector() {
	ctx := context.Background()
	w, err := rank.Open(ctx, rank.Config{Ranks: 2, HeapBytes: 1 << 20, Platform: "host"})
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(w))
	show := func() {
		families, err := registry.Gather()
		if err != nil {
			log.Fatal(err)
		}
		n := 0
		for _, f := range families {
			if f.GetName() == "sluice_queue_ring_bytes" {
				n = len(f.Metric)
			}
		}
		fmt.Println("rings:", n)
	}
	show()
	if err := w.Close(ctx); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// rings: 2
	// rings: 0
}

// The page is served where a program serves its metrics.
func ExampleHandler() {
	ctx := context.Background()
	w, err := rank.Open(ctx, rank.Config{Ranks: 2, HeapBytes: 1 << 20, Platform: "host"})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	mux := http.NewServeMux()
	mux.Handle(metrics.Path, metrics.Handler(w))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest("GET", "/debug/sluice", nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "2 ranks on the host platform"))
	// Output: 200 true
}
