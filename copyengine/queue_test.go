package copyengine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func waiter() *hip.Waiter { return hip.NewWaiter() }

// In order: an own world's plan that was prepared first must start first.
func TestStartRefusesBehindAPlanOfItsOwnWorld(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	queues := []*Queue{r.queue(0, 1), r.queue(0, 2)}
	a, b := &Owner{World: "w", Plan: "a", Rank: 4}, &Owner{World: "w", Plan: "b"}
	wa, wb := r.gated(), []work{r.gated(), r.gated()}
	r.mustPrepare(a, queues[1], wa) // on the second queue only
	if _, err := r.prepare(b, queues, wb...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e, bad := expect[*OrderError](Start(r.soon(), waiter(), b, queues))
		if bad != nil {
			t.Fatal(bad)
		}
		if e.Queue != queues[1].Name() || e.First.Plan != "a" || e.First.Rank != 4 {
			t.Errorf("the error is wrong: %v", e)
		}
	}
	r.must(Start(ended(), waiter(), a, queues[1:]), Start(ended(), waiter(), b, queues))
	for _, w := range append(wb, wa) {
		w.gate.Store(1)
	}
	for _, q := range queues {
		r.must(q.Drain(r.soon(), waiter(), b))
	}
}

// Behind another world's plan it waits, until that one starts, is flushed, or
// the queue stops.
func TestStartWaitsBehindAPlanOfAnotherWorld(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(r *rig, q *Queue, o *Owner, w work)
		fault bool
	}{
		"that starts":           {func(r *rig, q *Queue, o *Owner, _ work) { r.must(Start(ended(), waiter(), o, []*Queue{q})) }, false},
		"that is flushed":       {func(_ *rig, q *Queue, o *Owner, _ work) { Flush(o, []*Queue{q}) }, false},
		"that is executed":      {func(_ *rig, _ *Queue, _ *Owner, w work) { w.gate.Store(1) }, false},
		"that faults the queue": {func(_ *rig, _ *Queue, _ *Owner, w work) { w.gate.Store(2) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				q := r.queue(0, 1)
				a, b := &Owner{World: "v", Plan: "a"}, &Owner{World: "w", Plan: "b"}
				wa, wb := r.gated(), r.gated()
				if c.fault {
					wa = r.broken()
				}
				r.mustPrepare(a, q, wa)
				r.mustPrepare(b, q, wb)
				if err := Start(ended(), waiter(), b, []*Queue{q}); !errors.Is(err, context.Canceled) {
					t.Fatalf("got %v, want a Start that waits", err)
				}
				began := make(chan error, 1)
				go func() { began <- Start(r.soon(), waiter(), b, []*Queue{q}) }()
				synctest.Wait()
				if len(began) > 0 {
					t.Fatalf("it did not wait: %v", <-began)
				}
				c.end(r, q, a, wa)
				err := <-began
				if c.fault {
					if _, bad := expect[*FaultError](err); bad != nil {
						t.Error(bad)
					}
					r.must(q.Forget(r.soon(), a), q.Forget(r.soon(), b))
					return
				}
				r.must(err)
				wa.gate.Store(1)
				wb.gate.Store(1)
				r.must(q.Drain(r.soon(), waiter(), b))
			})
		})
	}
}

func TestBehindNamesTheFirstThatStillNeedsSomebody(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	names := []string{"a", "b", "c"}
	var owners []*Owner
	var works []work
	for _, n := range names {
		owners, works = append(owners, &Owner{Plan: n}), append(works, r.gated())
		r.mustPrepare(owners[len(owners)-1], q, works[len(works)-1])
	}
	behind := func(o *Owner, want string) {
		t.Helper()
		h, waits := q.Behind(o)
		if waits != (want != "") || h.Plan != want {
			t.Errorf("%s is behind %q (%v), want %q", o.Plan, h.Plan, waits, want)
		}
	}
	behind(owners[0], "")
	behind(owners[1], "a")
	behind(owners[2], "a")
	r.must(Start(r.soon(), waiter(), owners[0], []*Queue{q})) // its producer is still to come
	behind(owners[2], "a")
	Flush(owners[0], []*Queue{q})
	behind(owners[1], "")
	behind(owners[2], "b")
	works[0].gate.Store(1)
	r.must(q.Drain(r.soon(), waiter(), owners[0]))
	behind(owners[0], "") // it has nothing there
	behind(owners[2], "b")
	for _, w := range works {
		w.gate.Store(1)
	}
	r.must(q.Drain(r.soon(), waiter(), owners[2]))
}

func TestDrainWaitsForAllThatAnOwnerPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		q := r.queue(0, 1)
		o, other := &Owner{Plan: "p"}, &Owner{Plan: "q"}
		r.must(q.Drain(ended(), waiter(), o)) // nothing
		first, last := r.gated(), r.gated()
		r.mustPrepare(o, q, first)
		r.mustPrepare(other, q, last)
		if err := q.Drain(ended(), waiter(), o); !errors.Is(err, context.Canceled) || q.Passed(o) {
			t.Fatalf("got %v, want a Drain that waits", err)
		}
		drained := make(chan error, 1)
		go func() { drained <- q.Drain(r.soon(), waiter(), o) }()
		synctest.Wait()
		if len(drained) > 0 {
			t.Fatal("it did not wait")
		}
		first.gate.Store(1)
		r.must(<-drained)
		if !q.Passed(o) || q.Passed(other) {
			t.Error("the ledger disagrees")
		}
		last.gate.Store(1)
		r.must(q.Drain(r.soon(), waiter(), other))
	})
}

// What was executed before the queue stopped is no failure.
func TestAFaultFailsOnlyWhatWasNotExecuted(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	good, bad, after := &Owner{Plan: "good"}, &Owner{Plan: "bad"}, &Owner{Plan: "after"}
	wg, wb := r.gated(), r.broken()
	r.mustPrepare(good, q, wg)
	r.mustPrepare(bad, q, wb)
	r.mustPrepare(after, q, r.open())
	wb.gate.Store(1)
	drained := make(chan error, 1)
	go func() { drained <- q.Drain(r.soon(), waiter(), good) }()
	wg.gate.Store(1)
	r.faulted(q, bad)
	r.must(<-drained, q.Drain(ended(), waiter(), good))
	r.faulted(q, after)
	if f, wrong := expect[*FaultError](q.Fault()); wrong != nil || f.Queue != q.Name() || f.Engine == "" {
		t.Errorf("the fault is %v", q.Fault())
	}
	r.must(q.Forget(r.soon(), bad))
	if q.Fault() == nil {
		t.Error("the queue was made anew under a plan")
	}
	r.must(q.Forget(r.soon(), after))
	if q.Fault() != nil {
		t.Error("the queue is still faulted without a plan")
	}
	again := r.gated()
	r.mustPrepare(after, q, again)
	again.gate.Store(1)
	r.must(q.Drain(r.soon(), waiter(), after))
	r.carried(again)
	if s := q.Snapshot(); s.Faults != 1 || s.Fault != nil || s.Held != 0 {
		t.Errorf("the snapshot is wrong: %+v", s)
	}
}

func TestForgetLeavesAQueueThatIsWellAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	o, w := &Owner{Plan: "p"}, r.gated()
	r.mustPrepare(o, q, w)
	r.must(q.Forget(r.soon(), o))
	if q.Passed(o) {
		t.Error("it forgot what the engine will execute")
	}
	w.gate.Store(1)
	r.must(q.Drain(r.soon(), waiter(), o))
}

func TestEveryOwnerOnAQueueThatStopsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		q := r.queue(0, 1)
		var mu sync.Mutex
		var told []string
		owner := func(name string) *Owner {
			return &Owner{Plan: name, Faulted: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if _, bad := expect[*FaultError](err); bad != nil {
					t.Error(bad)
				}
				told = append(told, name)
			}}
		}
		done, bad, behind := owner("done"), owner("bad"), owner("behind")
		wd, wb := r.gated(), r.broken()
		r.mustPrepare(done, q, wd)
		r.mustPrepare(bad, q, wb)
		r.mustPrepare(behind, q, r.gated())
		r.mustPrepare(&Owner{Plan: "deaf"}, q, r.gated())
		wd.gate.Store(1)
		r.must(q.Drain(r.soon(), waiter(), done))
		wb.gate.Store(1)
		synctest.Wait()
		if want := []string{"bad", "behind"}; !slices.Equal(told, want) {
			t.Errorf("told were %v, want %v", told, want)
		}
		for _, h := range q.Snapshot().Holders {
			for _, e := range q.ledger.entries {
				if e.owner.Plan == h.Plan {
					r.must(q.Forget(r.soon(), e.owner))
					break
				}
			}
		}
	})
}

// The report of a fault may come late, when the queue has been made anew.
func TestALateReportOfAFaultReachesNobodyOnTheNewQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		q := r.queue(0, 1)
		bad, w := &Owner{Plan: "bad"}, r.broken()
		r.mustPrepare(bad, q, w)
		fresh := &Owner{Plan: "fresh", Faulted: func(err error) { t.Errorf("told of %v", err) }}
		q.mu.Lock() // whoever wants to report waits here
		w.gate.Store(1)
		for q.Fault() == nil {
			runtime.Gosched()
		}
		q.ledger.remove(bad)
		r.must(q.renew(r.soon(), q.fault.Load()))
		q.ledger.push(fresh, 1, load{}, 1<<40)
		q.mu.Unlock()
		synctest.Wait()
		r.must(q.Fault())
		q.look(func(l *ledger) { l.remove(fresh) })
	})
}

// A queue that stops under puts alone goes on by itself; each of those who put
// is told.
func TestAQueueThatStopsUnderPutsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		q := r.queue(0, 1)
		outcome := map[string]error{}
		put := func(name string, w work) {
			r.must(q.Put(ended(), waiter(), Put{Program: r.compile(q, w), Done: func(lost error) { outcome[name] = lost }}))
		}
		good, bad := r.gated(), r.broken()
		put("good", good)
		put("bad", bad)
		put("behind", r.open())
		good.gate.Store(1)
		bad.gate.Store(1)
		r.must(q.Quiet(r.soon(), waiter()))
		if len(outcome) != 3 || outcome["good"] != nil {
			t.Errorf("the outcome is %v", outcome)
		}
		for _, name := range []string{"bad", "behind"} {
			if _, wrong := expect[*FaultError](outcome[name]); wrong != nil {
				t.Error(wrong)
			}
		}
		synctest.Wait()
		last := r.open()
		put("last", last)
		r.carried(last)
		r.must(q.Quiet(r.soon(), waiter()))
		if outcome["last"] != nil || q.Snapshot().Puts != 0 {
			t.Errorf("the outcome is %v", outcome)
		}
	})
}

// If the engine stays dead the queue stays faulted, and every use says so.
func TestAQueueThatCannotBeMadeAnewSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := errors.New("the engine is dead")
		broken := false
		r := newRig(t, Config{Intercept: func(_, _ Endpoint, _ uint64, p *sdma.Packet) error {
			if broken {
				return dead
			}
			return nil
		}})
		q := r.queue(0, 1)
		broken = true
		var lost error
		r.must(q.Put(ended(), waiter(), Put{Program: r.compile(q, r.open()), Done: func(err error) { lost = err }}))
		synctest.Wait()
		r.must(q.Quiet(ended(), waiter())) // it keeps nobody waiting
		_, prepared := r.prepare(&Owner{}, []*Queue{q}, r.open())
		for use, err := range map[string]error{
			"what was put": lost,
			"Put":          q.Put(ended(), waiter(), Put{Program: r.compile(q, r.open())}),
			"Prepare":      prepared,
			"Fault":        q.Fault(),
			"Snapshot":     q.Snapshot().Fault,
		} {
			if _, bad := expect[*FaultError](err); bad != nil || !errors.Is(err, dead) {
				t.Errorf("%s: got %v, want the fault", use, err)
			}
		}
	})
}

func TestAWorldsFlagsAreReleasedWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	var works []work
	for _, world := range []string{"a", "b", "a"} {
		w := r.gated()
		works = append(works, w)
		r.must(q.Put(r.soon(), waiter(), Put{World: world, Program: r.compile(q, w), Flag: func() { w.gate.Store(1) }}))
	}
	q.ReleaseFlags("a")
	if works[0].gate.Load() != 1 || works[1].gate.Load() != 0 || works[2].gate.Load() != 1 {
		t.Error("other flags than the world's were stored")
	}
	q.ReleaseFlags("b")
	r.must(q.Quiet(r.soon(), waiter()))
}

func TestASnapshotTellsWhatAQueueHoldsAndHasDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	o, w := &Owner{World: "w", Plan: "p", Rank: 2}, r.gated()
	cost := r.compile(q, w).Cost()
	r.mustPrepare(o, q, w)
	s := q.Snapshot()
	if want := (Holder{World: "w", Plan: "p", Rank: 2, Round: 1, Cost: cost}); len(s.Holders) != 1 || s.Holders[0] != want {
		t.Errorf("the holders are %+v", s.Holders)
	}
	if s.Queue != q.Name() || s.Engine != q.Engine() || s.Held != cost || s.High != cost || s.Limits != q.Limits() {
		t.Errorf("the snapshot is wrong: %+v", s)
	}
	w.gate.Store(1)
	r.must(q.Drain(r.soon(), waiter(), o))
	if s := q.Snapshot(); s.Held != 0 || s.High != cost || len(s.Holders) != 0 || s.Stats.GateWaits > 1 {
		t.Errorf("the snapshot is wrong: %+v", s)
	}
}

// Who keeps a queue to look at it may do so when its memory is gone.
func TestASnapshotOfAQueueThatHasEndedTellsHowItEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q, err := r.node.Acquire(r.soon(), r.dev, place(0), place(1))
	r.must(err)
	_, addr := r.word()
	w := r.open()
	w.chain[0].Copies = []Copy{{Src: addr, Dst: addr + 8, Width: 8, Height: 1, SrcPitch: 8, DstPitch: 8}}
	r.must(q.Put(r.soon(), waiter(), Put{Program: r.compile(q, w)}), q.Quiet(r.soon(), waiter()))
	before := q.Snapshot()
	r.node.Release(q)
	after := q.Snapshot()
	if after.Stats.Copies != 1 || after.Stats.Bytes != 8 || after.Stats.Copies != before.Stats.Copies || after.Queue != before.Queue || after.Engine != before.Engine {
		t.Errorf("before: %+v\nafter: %+v", before, after)
	}
	r.must(q.Quiet(ended(), waiter()))
}
