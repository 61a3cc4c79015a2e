package plan

import (
	"context"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// walker is one rank on a course.
type walker struct {
	course
	*history
	failing *failing
	made    func(int, *Plan)
	r       *rank.Rank
	out     [modelPlans]*heap.Tensor
	plans   [modelPlans]*Plan
	alone   bool          // it leaves the program without its peer
	refused bool          // because its peer has left it
	late    chan struct{} // what a kernel waits for that marks late
}

// soon bounds a Wait and a Close: each may cross a peer's Close of another plan,
// and both last until then. A machine that is busy should not come near it. A
// rendezvous never lasts: a bound that ended it while a peer's Wait ends would
// leave open which came first.
const soon = 2 * time.Second

// bounded is the context of a call, which has ended or ends at once if cut.
func bounded(ctx context.Context, most time.Duration, cut bool) (context.Context, context.CancelFunc) {
	if cut {
		most = 100 * time.Microsecond
	}
	return context.WithTimeout(ctx, most)
}

// walk goes through the program until it ends or something fails, and then, as
// a rule, closes what is open.
func (w *walker) walk(ctx context.Context) {
	defer w.release()
	for i := range w.out {
		var err error
		if w.out[i], err = w.r.Zeros(ctx, heap.Uint8, modelRanks, 64); err != nil {
			return
		}
	}
	for step := range lastStep {
		here := w.step == step
		mine := here && w.rank == w.r.ID()
		if w.mishap == "body ends" && mine {
			return
		}
		if w.mishap == "one closes" && mine {
			w.alone = true
			break
		}
		if w.mishap == "all close" && here {
			break
		}
		if !w.take(ctx, step, mine) {
			if w.ends {
				return
			}
			break
		}
	}
	first := w.orders[0]
	if w.alone {
		first = w.orders[w.r.ID()]
	}
	w.close(ctx, first)
	w.close(ctx, modelPlans-1-first)
}

// take takes one step, and says whether the program goes on.
func (w *walker) take(ctx context.Context, step int, mine bool) bool {
	in := (step - newSteps) % perRound
	switch {
	case step < newSteps:
		return w.prepare(ctx, step, mine, true) == outcomeOK
	case in < modelPlans:
		return w.start(ctx, in, mine)
	case in%2 == 0:
		return w.await(ctx, (in-modelPlans)/2, mine)
	case step >= lastStep-perRound:
		return true // no NextRound in the last round
	}
	for {
		switch w.prepare(ctx, (in-modelPlans)/2, mine, false) {
		case outcomeOK:
			return true
		case outcomeBroken:
			return false
		}
		if mine = false; w.refused {
			return false
		}
	}
}

// prepare is New or NextRound of a plan, with its outcome.
func (w *walker) prepare(ctx context.Context, p int, mine, first bool) (outcome int) {
	steps := map[string]inject.Step{"rejects": inject.HandBack, "cannot reserve": inject.Reserve, "ring fails": inject.Ring}
	if first {
		steps["rejects"] = inject.Encode
	}
	if s, ok := steps[w.mishap]; ok && mine {
		w.failing.step, w.failing.rank = s, w.r.ID()
		w.failing.after.Store(0)
		w.failing.armed.Store(true)
		defer w.failing.armed.Store(false)
	}
	ctx, cancel := bounded(ctx, patience, mine && w.mishap == "withdraws")
	defer cancel()
	var err error
	switch {
	case mine && w.mishap == "wrong call":
		err = w.r.Barrier(ctx)
	case first:
		if w.plans[p], err = New(ctx, w.r, w.out[p], w.schedule(p)); err == nil {
			w.made(p, w.plans[p])
		}
	default:
		err = w.plans[p].NextRound(ctx)
	}
	w.refused = isA[*rank.ClosingError](err) || isA[*rank.GoneError](err)
	switch {
	case isA[*copyengine.RingError](err):
		outcome = outcomeBroken
	case err != nil:
		outcome = outcomeRefused
	}
	w.note("Take", w.r.ID(), p, outcome)
	return outcome
}

// schedule is the rank's one chunk.
func (w *walker) schedule(p int) schedule.Schedule {
	me := w.r.ID()
	s, err := schedule.Whole(w.out[p].Rows(me, me+1).Window(), w.writers(), schedule.Options{})
	if err != nil {
		panic(err)
	}
	return s
}

// writers is how many marks complete the rank's chunk.
func (w *walker) writers() int {
	if w.r.ID() == 0 {
		return modelWriters
	}
	return 1
}

// start starts a plan and launches the kernel that marks its chunk.
func (w *walker) start(ctx context.Context, p int, mine bool) bool {
	ctx, cancel := bounded(ctx, patience, false)
	defer cancel()
	h, err := w.plans[p].Start(ctx)
	if err != nil {
		return false
	}
	me, marks := w.r.ID(), w.writers()
	w.note("Start", me, p)
	extra := mine && w.mishap == "extra mark"
	if extra {
		marks++
	}
	late := mine && w.mishap == "marks late"
	if late {
		w.late = make(chan struct{})
	}
	hold := w.late
	mark := &kernels.Kernel{Name: "mark", Go: func(t *hip.Thread) {
		v := kernels.NewView(t, t.Arg(0))
		if late {
			<-hold
		}
		if extra && t.Block == marks-1 {
			w.note("ExtraMark", me, p)
		} else {
			w.note("Mark", me, p)
		}
		v.MarkReady(v.First())
	}}
	return w.r.Launch(mark, kernels.Grid(marks), h) == nil
}

func (w *walker) await(ctx context.Context, p int, mine bool) bool {
	ctx, cancel := bounded(ctx, soon, mine && w.mishap == "wait ends")
	defer cancel()
	outcome := outcomeOK
	if w.plans[p].Wait(ctx) != nil {
		outcome, w.alone = outcomeRefused, true
	}
	w.release()
	w.note("Wait", w.r.ID(), p, outcome)
	return outcome == outcomeOK
}

// release lets a kernel that marks late go on.
func (w *walker) release() {
	if w.late != nil {
		close(w.late)
		w.late = nil
	}
}

// close closes a plan when nothing that the rank launched can mark it any more.
func (w *walker) close(ctx context.Context, p int) {
	pl := w.plans[p]
	w.release()
	if pl == nil || w.r.Sync(ctx) != nil {
		return
	}
	ctx, cancel := bounded(ctx, soon, w.mishap == "close is cut" && w.rank == w.r.ID() && w.plan == p)
	defer cancel()
	w.note("Close", w.r.ID(), p)
	err := pl.Close(ctx)
	switch {
	case isA[*rank.CrossedError](err):
		w.note("Crossed", w.r.ID(), p)
	case err != nil:
		w.note("CloseEnds", w.r.ID(), p)
	case pl.State() == Closed:
		w.note("Closed", w.r.ID(), p)
	default:
		w.note("Closing", w.r.ID(), p)
	}
}
