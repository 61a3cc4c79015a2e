package timeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// event is one event of the Trace Event Format, which Chrome and Perfetto read.
type event struct {
	Phase string         `json:"ph"`
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	TS    float64        `json:"ts"` // µs
	Dur   *float64       `json:"dur,omitempty"`
	ID    string         `json:"id,omitempty"` // of a flow
	Bind  string         `json:"bp,omitempty"`
	Scope string         `json:"s,omitempty"` // of an instant
	Args  map[string]any `json:"args,omitempty"`
}

// WriteTrace writes what is recorded as JSON that Perfetto and Chrome open. A
// rank is a process. Its tracks are, for each plan, the rounds and what the
// producer computes for each chunk; for each peer the copies, with an arrow
// from the mark that triggered each; and the arrivals from each other rank.
func (r *Recorder) WriteTrace(w io.Writer) error {
	t := tracer{processes: map[process]int{}, tracks: map[track]int{}}
	for _, round := range r.Rounds() {
		t.round(&round)
	}
	return json.NewEncoder(w).Encode(map[string]any{"displayTimeUnit": "ns", "traceEvents": t.events})
}

type process struct {
	world string
	rank  int
}

type track struct {
	pid  int
	name string
}

// tracer turns rounds into events.
type tracer struct {
	events    []event
	processes map[process]int
	tracks    map[track]int
	flows     int
}

// process is the number of a rank, announced when it is first met.
func (t *tracer) process(world string, rank int) int {
	key := process{world, rank}
	pid, ok := t.processes[key]
	if !ok {
		pid = len(t.processes) + 1
		t.processes[key] = pid
		t.announce("process", fmt.Sprintf("rank %d of %s", rank, world), pid, 0, rank)
	}
	return pid
}

// track is the number of a track of a process; those of lower order are shown
// first.
func (t *tracer) track(pid int, name string, order int) int {
	key := track{pid, name}
	tid, ok := t.tracks[key]
	if !ok {
		tid = len(t.tracks) + 1
		t.tracks[key] = tid
		t.announce("thread", name, pid, tid, order)
	}
	return tid
}

func (t *tracer) announce(what, name string, pid, tid, order int) {
	t.events = append(t.events,
		event{Phase: "M", Name: what + "_name", PID: pid, TID: tid, Args: map[string]any{"name": name}},
		event{Phase: "M", Name: what + "_sort_index", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// slice adds what goes on from one time to another.
func (t *tracer) slice(pid, tid int, cat, name string, from, to time.Duration, args map[string]any) {
	dur := micros(to - from)
	t.events = append(t.events, event{Phase: "X", Name: name, Cat: cat, PID: pid, TID: tid, TS: micros(from), Dur: &dur, Args: args})
}

// The order of a rank's tracks.
const (
	orderRounds = iota
	orderProducer
	orderCopies
	orderArrivals = orderCopies + 1<<10
)

func (t *tracer) round(r *Round) {
	pid := t.process(r.World, r.Rank)
	if r.Started > 0 {
		tid := t.track(pid, "rounds of "+r.Plan, orderRounds)
		t.slice(pid, tid, "round", fmt.Sprintf("round %d", r.Round), r.Started, r.Ended, map[string]any{"plan": r.Plan})
	}
	producer := t.track(pid, "producer of "+r.Plan, orderProducer)
	for _, c := range r.Computed() {
		t.slice(pid, producer, "compute", fmt.Sprintf("chunk %d", c.ID), c.From, c.To, map[string]any{"round": r.Round})
	}
	for i := range r.Chunks {
		for _, k := range r.Chunks[i].Copies {
			t.copy(r, pid, producer, &r.Chunks[i], k)
		}
	}
}

// copy adds a chunk's way to one peer.
func (t *tracer) copy(r *Round, pid, producer int, c *Chunk, k Copy) {
	if k.Began == 0 {
		return
	}
	tid := t.track(pid, fmt.Sprintf("copies to rank %d", k.Peer), orderCopies+k.Peer)
	name, ended := fmt.Sprintf("chunk %d", c.ID), k.Ended
	args := map[string]any{"round": r.Round, "bytes": c.Bytes, "plan": r.Plan}
	if ended == 0 {
		name, ended = name+" (not ended)", max(r.Ended, k.Began)
	}
	t.slice(pid, tid, "copy", name, k.Began, ended, args)
	if c.Marked > 0 && c.Marked <= k.Began {
		t.flows++
		id := fmt.Sprint(t.flows)
		t.events = append(t.events,
			event{Phase: "s", Name: "trigger", Cat: "trigger", ID: id, PID: pid, TID: producer, TS: micros(c.Marked)},
			event{Phase: "f", Name: "trigger", Cat: "trigger", ID: id, Bind: "e", PID: pid, TID: tid, TS: micros(k.Began)})
	}
	if k.Arrived > 0 {
		to := t.process(r.World, k.Peer)
		t.events = append(t.events, event{
			Phase: "i", Name: fmt.Sprintf("chunk %d", c.ID), Cat: "arrival", Scope: "t", TS: micros(k.Arrived),
			PID: to, TID: t.track(to, fmt.Sprintf("arrivals from rank %d", r.Rank), orderArrivals+r.Rank), Args: args,
		})
	}
}

// Span is when something went on for a chunk.
type Span struct {
	ID       int
	From, To time.Duration
}

// Computed is what the producer did for each chunk: the time from the mark
// before, or from Start, to the chunk's own, in the order of the marks.
func (r *Round) Computed() (spans []Span) {
	for _, c := range r.Chunks {
		if c.Marked > 0 {
			spans = append(spans, Span{ID: c.ID, To: c.Marked})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.ID, b.ID)) })
	from := r.Started
	for i := range spans {
		if from == 0 { // the clock of Start is another one
			from = spans[i].To
		}
		spans[i].From = min(from, spans[i].To)
		from = spans[i].To
	}
	return spans
}
