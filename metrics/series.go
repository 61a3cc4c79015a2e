package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/internal/histogram"
	"github.com/triggeredplans/sluice/plan"
)

// family is one metric that the collector exports, of what it looks at: T is
// what one set of labels stands for.
type family[T any] struct {
	name, help string
	kind       prometheus.ValueType
	value      func(T) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// Each kind of thing has its labels, besides the world's.
var (
	queueLabels = []string{"queue"}
	partLabels  = []string{"plan", "rank"}
	rankLabels  = []string{"rank"}
)

var queueFamilies = []family[*copyengine.Snapshot]{
	{"queue_fill_ratio", "What prepared copies hold of the queue, as a fraction of the limit.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.Held) / float64(q.Limits.Prepared) }},
	{"queue_plans", "Plans that have copies prepared on the queue.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(len(q.Holders)) }},
	{"queue_copies_total", "Copies that the queue's engine has made.", counter,
		func(q *copyengine.Snapshot) float64 { return float64(q.Stats.Copies) }},
	{"queue_copied_bytes_total", "Bytes that the queue's engine has carried.", counter,
		func(q *copyengine.Snapshot) float64 { return float64(q.Stats.Bytes) }},
	{"queue_faults_total", "Faults that stopped the queue.", counter,
		func(q *copyengine.Snapshot) float64 { return float64(q.Faults) }},
	{"queue_faulted", "1 while the queue is stopped by a fault, which lasts until its plans are closed, otherwise 0.", gauge,
		func(q *copyengine.Snapshot) float64 { return truth(q.Fault != nil) }},
}

// ringFamilies are of queues that count in bytes.
var ringFamilies = []family[*copyengine.Snapshot]{
	{"queue_ring_bytes", "Size of the queue's ring.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.Limits.Capacity) }},
	{"queue_limit_bytes", "Most that prepared copies may hold of the ring.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.Limits.Prepared) }},
	{"queue_prepared_bytes", "What prepared copies hold of the ring.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.Held) }},
	{"queue_prepared_peak_bytes", "Most that prepared copies have held of the ring.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.High) }},
	{"queue_put_bytes", "What puts in flight hold of the ring.", gauge,
		func(q *copyengine.Snapshot) float64 { return float64(q.Puts) }},
}

// part is one rank's part of a plan.
type part struct {
	plan *plan.Snapshot
	rank int
}

func (p part) own() *plan.Part { return &p.plan.Ranks[p.rank] }

var partFamilies = []family[part]{
	{"plan_round", "Round that is prepared, running or done.", gauge,
		func(p part) float64 { return float64(p.plan.Round) }},
	{"plan_chunks", "Chunks that the rank sends each round.", gauge,
		func(p part) float64 { return float64(p.own().Own) }},
	{"plan_chunks_marked", "Chunks of the rank that are marked ready in the round.", gauge,
		func(p part) float64 { return float64(p.own().Marked) }},
	{"plan_chunks_delivered", "Chunks of the rank that have arrived at every peer in the round.", gauge,
		func(p part) float64 { return float64(p.own().Delivered) }},
	{"plan_waiting_seconds", "How long the rank's gates and copies have kept a round waiting: the time since Start while not all of its chunks are delivered, otherwise 0.", gauge,
		func(p part) float64 {
			if p.own().Delivered == p.own().Own {
				return 0
			}
			return p.own().Since.Seconds()
		}},
}

// stateFamily has a series for each state, of which one is 1.
var stateFamily = family[struct{}]{name: "plan_state", help: "1 for the state that the rank's part of the plan is in, 0 for the others."}

var states = []plan.State{plan.Prepared, plan.Started, plan.Done, plan.Failed, plan.Closing}

var rankFamilies = []family[*plan.Totals]{
	{"rounds_total", "Rounds that were delivered: Waits of the rank that succeeded.", counter,
		func(t *plan.Totals) float64 { return float64(t.Rounds) }},
	{"marks_total", "Marks of the rank's chunks.", counter,
		func(t *plan.Totals) float64 { return float64(t.Marks) }},
	{"extra_marks_total", "Marks beyond a chunk's writers, or of chunks that are not the rank's.", counter,
		func(t *plan.Totals) float64 { return float64(t.ExtraMarks) }},
	{"wait_timeouts_total", "Waits of the rank that ended with their context before the round was delivered.", counter,
		func(t *plan.Totals) float64 { return float64(t.Timeouts) }},
}

var refusedFamily = family[struct{}]{name: "failed_preparations_total", help: "Calls of New and NextRound that failed, counted on every rank, by kind of cause."}

// histogramFamily is a histogram of the world.
type histogramFamily struct {
	name, help string
	of         func(*plan.Observation, []copyengine.Snapshot) histogram.Snapshot
}

var histogramFamilies = []histogramFamily{
	{"preparation_seconds", "Time to put a round on every queue, once all ranks had come.",
		func(o *plan.Observation, _ []copyengine.Snapshot) histogram.Snapshot { return o.Preparation }},
	{"wait_seconds", "Time that Waits took.",
		func(o *plan.Observation, _ []copyengine.Snapshot) histogram.Snapshot { return o.Wait }},
	{"delivery_seconds", "Time from the mark that opened a chunk's gate, or from when the copy engine came to it if it was open, to the arrival at the peer.",
		func(_ *plan.Observation, queues []copyengine.Snapshot) (all histogram.Snapshot) {
			for i := range queues {
				all.Add(&queues[i].Stats.Delivery)
			}
			return all
		}},
}

// gateFamily is a histogram of each queue.
var gateFamily = family[struct{}]{name: "queue_gate_wait_seconds", help: "Time that the queue's engine stood at gates that were closed when it came to them."}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// buckets gives a histogram as Prometheus has it. Of every `each` bounds one is
// exported.
func buckets(s *histogram.Snapshot, each int) (count uint64, sum float64, upTo map[float64]uint64) {
	upTo = map[float64]uint64{}
	for i, n := range s.Counts {
		count += n
		if i < histogram.Buckets-1 && i%each == 0 {
			upTo[histogram.Bound(i).Seconds()] = count
		}
	}
	return count, s.Sum.Seconds(), upTo
}

func number(rank int) string { return strconv.Itoa(rank) }
