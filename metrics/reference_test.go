package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/internal/histogram"
	"github.com/triggeredplans/sluice/plan"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

// reference is docs/metrics.md.
func reference() string {
	var b strings.Builder
	b.WriteString(`# Metrics

A program registers a collector for each world, and serves a page beside it:

` + "```go" + `
registry.MustRegister(metrics.NewCollector(world))
mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
mux.Handle(metrics.Path, metrics.Handler(world)) // /debug/sluice
` + "```" + `

Every series has the label ` + "`world`" + `. Series of a plan are there from New until
the plan is CLOSED, all others until the world is closed. What is exported is
read when it is scraped: a scrape reads every plan's gates once and locks each
queue for a moment.

The page shows the same for people: queues as bars, plans with their states,
and a square for each chunk and rank. A round that is stuck is explained there
in the sentences of a Wait's timeout. ` + "`?format=json`" + ` is for programs.

` + "`metrics/dashboard.json`" + ` is a Grafana dashboard of these metrics, and
` + "`metrics/alerts.yaml`" + ` has alert rules for Prometheus.

This page is made from the collector: ` + "`go test ./metrics -run Reference -update`" + `.

`)
	titles := map[string]string{
		"queue": "Of each queue", "plan,rank": "Of each rank's part of a plan", "plan,rank,state": "States of plans",
		"rank": "Of each rank, over all plans", "kind": "Preparations that failed", "": "Of the world",
	}
	last := "none"
	for d := range described() {
		if labels := strings.Join(d.labels, ","); labels != last {
			last = labels
			fmt.Fprintf(&b, "## %s\n\n", titles[labels])
			if len(d.labels) > 0 {
				fmt.Fprintf(&b, "Labels besides world: %s.\n\n", strings.Join(d.labels, ", "))
			}
			b.WriteString("| metric | type | what it is |\n| --- | --- | --- |\n")
		}
		fmt.Fprintf(&b, "| `sluice_%s` | %s | %s |\n", d.name, d.kind, d.help)
		if next := following(d.name); next != last {
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, `## Labels

- `+"`queue`"+`: the places that it leads from and to, for example `+"`host:0→host:1`"+`.
- `+"`state`"+`: %s. A plan
  that is CLOSED is not exported.
- `+"`kind`"+`: %s;
  the first that fits the error. `+"`rank`"+` means that a rank was gone, cancelled
  or in another call, and `+"`put`"+` that a Put waited on a queue.

## Histograms

They have buckets of 1 µs, 2 µs and so on up to %v; those of queues have every
second of these. A platform that cannot tell a time leaves its histogram
empty. Metrics in bytes of queues exist where a queue is a ring.
`, list(states), list(plan.Refusals()), histogram.Bound(histogram.Buckets-2).Round(1e9))
	return b.String()
}

// following is the labels of the metric behind one.
func following(name string) string {
	found := false
	for d := range described() {
		if found {
			return strings.Join(d.labels, ",")
		}
		found = d.name == name
	}
	return "none"
}

func list[T any](of []T) string {
	var words []string
	for _, w := range of {
		words = append(words, fmt.Sprintf("`%v`", w))
	}
	return strings.Join(words, ", ")
}

func TestTheReferenceSaysWhatTheCollectorExports(t *testing.T) {
	const file = "../docs/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != reference() {
		t.Errorf("%s is not what the collector exports (error %v); run go test ./metrics -run Reference -update", file, err)
	}
}
