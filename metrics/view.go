package metrics

import (
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// lateAfter is how long after Start a chunk that has not arrived is shown as
// late; it is late at once when its rank has FAILED.
const lateAfter = time.Second

// view is what the page shows; its JSON is ?format=json.
type view struct {
	World    string      `json:"world"`
	Platform string      `json:"platform"`
	Closed   bool        `json:"closed"`
	Time     time.Time   `json:"time"`
	Ranks    []rankView  `json:"ranks"`
	Queues   []queueView `json:"queues"`
	Plans    []planView  `json:"plans"`
	Refresh  int         `json:"-"`
}

type rankView struct {
	Rank       int    `json:"rank"`
	Rounds     uint64 `json:"rounds"`
	Marks      uint64 `json:"marks"`
	ExtraMarks uint64 `json:"extra_marks"`
	Timeouts   uint64 `json:"timeouts"`
}

type queueView struct {
	Queue     string   `json:"queue"`
	Engine    string   `json:"engine"`
	Unit      string   `json:"unit"`
	Capacity  int64    `json:"capacity"`
	Limit     int64    `json:"limit"`
	Prepared  int64    `json:"prepared"`
	Peak      int64    `json:"prepared_peak"`
	Puts      int64    `json:"puts"`
	Holders   []string `json:"holders"`
	Copies    uint64   `json:"copies"`
	Bytes     uint64   `json:"bytes"`
	GateWaits uint64   `json:"gate_waits"`
	Waited    float64  `json:"gate_waited_seconds"`
	Faults    uint64   `json:"faults"`
	Fault     string   `json:"fault,omitempty"`
}

// Full is the fill of the queue in hundredths of the limit.
func (q queueView) Full() int64 { return 100 * q.Prepared / max(1, q.Limit) }

// High is where a queue's bar changes its colour.
func (q queueView) High() int64 { return q.Limit * 4 / 5 }

type planView struct {
	Plan   string      `json:"plan"`
	Round  uint64      `json:"round"`
	Ranks  []partView  `json:"ranks"`
	Chunks []chunkView `json:"chunks"`
	// Short is what the round waits for, as a Wait that timed out would say it,
	// and More how many chunks it leaves out.
	Short []string `json:"short,omitempty"`
	More  int      `json:"short_more,omitempty"`
}

// firstShort is how much of Short the page shows at once.
const firstShort = 3

// First and Rest divide Short.
func (p planView) First() []string { return p.Short[:min(firstShort, len(p.Short))] }
func (p planView) Rest() []string  { return p.Short[len(p.First()):] }

type partView struct {
	Rank      int     `json:"rank"`
	State     string  `json:"state"`
	Running   float64 `json:"running_seconds"` // since Start
	Chunks    int     `json:"chunks"`
	Marked    int     `json:"marked"`
	Delivered int     `json:"delivered"`
	Error     string  `json:"error,omitempty"`
}

type chunkView struct {
	Chunk   int        `json:"chunk"`
	Rank    int        `json:"rank"` // that sends it
	Marks   uint64     `json:"marks"`
	Writers uint64     `json:"writers"`
	At      []cellView `json:"at"` // each peer
}

type cellView struct {
	Rank  int    `json:"rank"`
	State string `json:"state"` // waiting, marked, sent or arrived
	Late  bool   `json:"late,omitempty"`
}

var progressNames = [...]string{plan.Waiting: "waiting", plan.Marked: "marked", plan.Sent: "sent", plan.Arrived: "arrived"}

// newView looks at a world.
func newView(w *rank.World) view {
	v := view{World: w.Name(), Platform: w.Platform(), Closed: w.Closed(), Time: time.Now(), Queues: []queueView{}, Plans: []planView{}}
	o := plan.Observe(w)
	for r, t := range o.Ranks {
		v.Ranks = append(v.Ranks, rankView{r, t.Rounds, t.Marks, t.ExtraMarks, t.Timeouts})
	}
	for _, q := range look(w) {
		v.Queues = append(v.Queues, newQueueView(&q))
	}
	for i := range o.Plans {
		v.Plans = append(v.Plans, newPlanView(&o.Plans[i]))
	}
	return v
}

func newQueueView(q *copyengine.Snapshot) queueView {
	v := queueView{
		Queue: q.Queue, Engine: q.Engine, Unit: q.Limits.Unit, Capacity: q.Limits.Capacity, Limit: q.Limits.Prepared,
		Prepared: q.Held, Peak: q.High, Puts: q.Puts, Holders: []string{}, Copies: q.Stats.Copies, Bytes: q.Stats.Bytes,
		GateWaits: q.Stats.GateWaits, Waited: q.Stats.GateWaited.Seconds(), Faults: q.Faults,
	}
	for _, h := range q.Holders {
		v.Holders = append(v.Holders, fmt.Sprint(h))
	}
	if q.Fault != nil {
		v.Fault = q.Fault.Error()
	}
	return v
}

func newPlanView(p *plan.Snapshot) planView {
	v := planView{Plan: p.Plan, Round: p.Round, Chunks: []chunkView{}, More: p.More}
	late := false // the round has gone on for so long that what has not arrived is late
	for r, part := range p.Ranks {
		pv := partView{Rank: r, State: part.State.String(), Running: part.Since.Seconds(), Chunks: part.Own, Marked: part.Marked, Delivered: part.Delivered}
		if part.Err != nil {
			pv.Error = part.Err.Error()
		}
		late = late || part.State == plan.Failed || part.Since >= lateAfter
		v.Ranks = append(v.Ranks, pv)
	}
	for i, c := range p.Chunks {
		cv := chunkView{Chunk: i, Rank: c.Owner, Marks: c.Marks, Writers: c.Writers, At: []cellView{}}
		for r, at := range c.At {
			if r != c.Owner {
				cv.At = append(cv.At, cellView{r, progressNames[at], late && at != plan.Arrived})
			}
		}
		v.Chunks = append(v.Chunks, cv)
	}
	for _, s := range p.Short {
		v.Short = append(v.Short, s.String())
	}
	return v
}
