package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// Collector exports a world's queues and plans to Prometheus. Every series has
// the label world, so the collectors of several worlds fit one registry. Once
// the world is closed it exports nothing.
type Collector struct {
	world *rank.World
	descs map[string]*prometheus.Desc
}

// NewCollector returns a collector to register. It reads the world when it is
// scraped, and costs nothing in between.
func NewCollector(w *rank.World) *Collector {
	c := &Collector{world: w, descs: map[string]*prometheus.Desc{}}
	for s := range described() {
		c.descs[s.name] = prometheus.NewDesc("sluice_"+s.name, s.help, s.labels, prometheus.Labels{"world": w.Name()})
	}
	return c
}

// description is what the reference says of a metric.
type description struct {
	name, kind, help string
	labels           []string
}

// described lists every metric.
func described() iter.Seq[description] {
	return func(yield func(description) bool) {
		kinds := map[prometheus.ValueType]string{counter: "counter", gauge: "gauge"}
		var all []description
		for _, f := range append(ringFamilies, queueFamilies...) {
			all = append(all, description{f.name, kinds[f.kind], f.help, queueLabels})
		}
		all = append(all, description{gateFamily.name, "histogram", gateFamily.help, queueLabels})
		for _, f := range partFamilies {
			all = append(all, description{f.name, kinds[f.kind], f.help, partLabels})
		}
		all = append(all, description{stateFamily.name, "gauge", stateFamily.help, append(partLabels[:2:2], "state")})
		for _, f := range rankFamilies {
			all = append(all, description{f.name, kinds[f.kind], f.help, rankLabels})
		}
		all = append(all, description{refusedFamily.name, "counter", refusedFamily.help, []string{"kind"}})
		for _, f := range histogramFamilies {
			all = append(all, description{f.name, "histogram", f.help, nil})
		}
		for _, d := range all {
			if !yield(d) {
				return
			}
		}
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for s := range described() {
		ch <- c.descs[s.name]
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.world.Closed() {
		return
	}
	queues := look(c.world)
	o := plan.Observe(c.world)
	for i := range queues {
		c.queue(ch, &queues[i])
	}
	for i := range o.Plans {
		c.plan(ch, &o.Plans[i])
	}
	for r := range o.Ranks {
		emit(c, ch, rankFamilies, &o.Ranks[r], number(r))
	}
	for _, kind := range plan.Refusals() {
		ch <- prometheus.MustNewConstMetric(c.descs[refusedFamily.name], counter, float64(o.Refused[kind]), kind)
	}
	for _, f := range histogramFamilies {
		s := f.of(&o, queues)
		count, sum, upTo := buckets(&s, 1)
		ch <- prometheus.MustNewConstHistogram(c.descs[f.name], count, sum, upTo)
	}
}

// look takes the snapshots of a world's queues.
func look(w *rank.World) []copyengine.Snapshot {
	queues := w.Queues()
	all := make([]copyengine.Snapshot, len(queues))
	for i, q := range queues {
		all[i] = q.Snapshot()
	}
	return all
}

func (c *Collector) queue(ch chan<- prometheus.Metric, q *copyengine.Snapshot) {
	if q.Limits.Unit == "bytes" {
		emit(c, ch, ringFamilies, q, q.Queue)
	}
	emit(c, ch, queueFamilies, q, q.Queue)
	count, sum, upTo := buckets(&q.Stats.GateWait, 2)
	ch <- prometheus.MustNewConstHistogram(c.descs[gateFamily.name], count, sum, upTo, q.Queue)
}

func (c *Collector) plan(ch chan<- prometheus.Metric, p *plan.Snapshot) {
	for r := range p.Ranks {
		emit(c, ch, partFamilies, part{p, r}, p.Plan, number(r))
		for _, s := range states {
			ch <- prometheus.MustNewConstMetric(c.descs[stateFamily.name], gauge, truth(p.Ranks[r].State == s), p.Plan, number(r), s.String())
		}
	}
}

func emit[T any](c *Collector, ch chan<- prometheus.Metric, families []family[T], of T, labels ...string) {
	for _, f := range families {
		ch <- prometheus.MustNewConstMetric(c.descs[f.name], f.kind, f.value(of), labels...)
	}
}
