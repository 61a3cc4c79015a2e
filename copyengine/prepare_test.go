package copyengine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/triggeredplans/sluice/internal/inject"
)

// Whoever prepares on several queues at the same moment as others stands in
// the same order on each that they share.
func TestPreparationsHaveOneOrderOnAllQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{RingBytes: 1 << 16})
	queues := []*Queue{r.queue(0, 1), r.queue(0, 2), r.queue(1, 0), r.queue(2, 1)}
	shut := r.gated() // in front, so that nothing passes meanwhile
	front := &Owner{Plan: "front"}
	if _, err := r.prepare(front, queues, shut, shut, shut, shut); err != nil {
		t.Fatal(err)
	}
	free := r.open()
	var wg sync.WaitGroup
	for i := range 8 {
		dice := rand.New(rand.NewPCG(3, uint64(i)))
		wg.Go(func() {
			for j := range 25 {
				o := &Owner{Plan: fmt.Sprintf("plan %d of %d", j, i), World: fmt.Sprint(i)}
				var items []Item
				for _, q := range dice.Perm(len(queues))[:2+dice.IntN(3)] {
					p, err := queues[q].Compile(free.chain)
					if err != nil {
						t.Error(err)
						return
					}
					items = append(items, Item{Queue: queues[q], Program: p, Owner: o})
				}
				SortItems(items)
				if _, err := Prepare(items, 1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for a, qa := range queues {
		for _, qb := range queues[:a] {
			var shared [2][]string
			for i, pair := range [2][2]*Queue{{qa, qb}, {qb, qa}} {
				for _, h := range pair[0].Snapshot().Holders {
					if slices.ContainsFunc(pair[1].Snapshot().Holders, func(o Holder) bool { return o.Plan == h.Plan }) {
						shared[i] = append(shared[i], h.Plan)
					}
				}
			}
			if len(shared[0]) < 50 || !slices.Equal(shared[0], shared[1]) {
				t.Errorf("%s and %s have %d plans in common, in another order", qa.Name(), qb.Name(), len(shared[0]))
			}
		}
	}
	shut.gate.Store(1)
	for _, q := range queues {
		r.must(q.Drain(r.soon(), waiter(), front))
	}
}

var errInjected = errors.New("injected")

// Each way to fail before an engine was told leaves every queue as it was.
func TestAPreparationIsOnEveryQueueOrOnNone(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *rig, queues []*Queue, fail *inject.Step) (undo func())
		want  func(error) error
	}{
		"no room on the last queue": {func(r *rig, queues []*Queue, _ *inject.Step) func() {
			full, o := r.gated(), &Owner{Plan: "big"}
			step := full.chain[0]
			for size := int64(0); ; size = r.compile(queues[2], full).Cost() {
				if size+r.compile(queues[2], r.gated()).Cost() > queues[2].Limits().Prepared {
					break
				}
				full.chain = append(full.chain, Step{Signal: step.Signal})
			}
			r.mustPrepare(o, queues[2], full)
			return func() { full.gate.Store(1); r.must(queues[2].Drain(r.soon(), waiter(), o)) }
		}, func(err error) error {
			e, bad := expect[*CapacityError](err)
			if bad == nil && (len(e.Holders) != 1 || e.Holders[0].Plan != "big" || e.Held+e.Want <= e.Limit) {
				bad = fmt.Errorf("the error is wrong: %v", err)
			}
			return bad
		}},
		"a Put that waits on the last queue": {func(r *rig, queues []*Queue, _ *inject.Step) func() {
			w := r.gated()
			r.must(queues[2].Put(r.soon(), waiter(), Put{Program: r.compile(queues[2], w), Flag: func() {}}))
			return func() { w.gate.Store(1); r.must(queues[2].Quiet(r.soon(), waiter())) }
		}, func(err error) error {
			if !errors.Is(err, ErrPutWaits) {
				return fmt.Errorf("got %v, want ErrPutWaits", err)
			}
			return nil
		}},
		"a reservation that fails": {func(_ *rig, _ []*Queue, fail *inject.Step) func() {
			*fail = inject.Reserve
			return func() { *fail = "" }
		}, func(err error) error {
			if !errors.Is(err, errInjected) {
				return fmt.Errorf("got %v", err)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fail inject.Step
			r := newRig(t, Config{Inject: func(step inject.Step, rank int) error {
				if step == fail && rank == 3 {
					return errInjected
				}
				return nil
			}})
			queues := []*Queue{r.queue(0, 1), r.queue(0, 2), r.queue(0, 3)}
			undo := c.spoil(r, queues, &fail)
			before := holdings(queues)
			o := &Owner{Plan: "p", Rank: 3}
			works := []work{r.gated(), r.gated(), r.gated()}
			for range 3 {
				failed, err := r.prepare(o, queues, works...)
				if err := c.want(err); err != nil {
					t.Error(err)
				}
				if failed != 3 {
					t.Errorf("it says that rank %d failed", failed)
				}
			}
			if after := holdings(queues); after != before {
				t.Errorf("before: %s\nafter:  %s", before, after)
			}
			undo()
			if _, err := r.prepare(o, queues, works...); err != nil {
				t.Fatal(err)
			}
			for i, w := range works {
				if w.signal.Load() != 0 {
					t.Error("a copy passed its gate")
				}
				w.gate.Store(1)
				r.must(queues[i].Drain(r.soon(), waiter(), o))
				r.carried(w)
			}
		})
	}
}

// holdings is what queues hold and have held.
func holdings(queues []*Queue) (s string) {
	for _, q := range queues {
		now := q.Snapshot()
		s += fmt.Sprintf("%s: %d of %v, %d at most, puts %d; ", now.Queue, now.Held, now.Holders, now.High, now.Puts)
	}
	return s
}

// As soon as one engine has been told, what was told is on its way: those
// queues keep their entry, the others never had one.
func TestAFailureAmongTheDoorbellsSaysWhetherAnythingWasRung(t *testing.T) {
	for rung := range 3 {
		t.Run(fmt.Sprintf("after %d", rung), func(t *testing.T) {
			t.Parallel()
			rings, armed := 0, true
			r := newRig(t, Config{Inject: func(step inject.Step, rank int) error {
				if step == inject.Ring && armed {
					if rings++; rings > rung {
						return errInjected
					}
				}
				return nil
			}})
			queues := []*Queue{r.queue(0, 1), r.queue(0, 2), r.queue(0, 3)}
			o := &Owner{Plan: "p", Rank: 5}
			works := []work{r.gated(), r.gated(), r.gated()}
			failed, err := r.prepare(o, queues, works...)
			if failed != 5 || !errors.Is(err, errInjected) {
				t.Errorf("rank %d: %v", failed, err)
			}
			var torn *RingError
			if errors.As(err, &torn) != (rung > 0) {
				t.Errorf("with %d rung the error is %v", rung, err)
			} else if rung > 0 && (torn.Queue != queues[rung].Name() || torn.Rank != 5) {
				t.Errorf("the error is wrong: %v", err)
			}
			for i, q := range queues {
				if held := !q.Passed(o); held != (i < rung) {
					t.Errorf("queue %d of %d rung holds it: %v", i, rung, held)
				}
			}
			for i, w := range works {
				w.gate.Store(1)
				r.must(queues[i].Drain(r.soon(), waiter(), o))
			}
			armed = false
			again := []work{r.gated(), r.gated(), r.gated()}
			if _, err := r.prepare(o, queues, again...); err != nil {
				t.Fatal(err)
			}
			for i, w := range again {
				w.gate.Store(1)
				r.must(queues[i].Drain(r.soon(), waiter(), o))
				r.carried(w)
				if n := works[i].signal.Load(); n != map[bool]uint64{true: 1, false: 0}[i < rung] {
					t.Errorf("the first preparation's signal %d is %d", i, n)
				}
			}
		})
	}
}

func TestNothingIsPreparedOnAQueueThatHasStoppedOrEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	bad, o := r.broken(), &Owner{Plan: "bad"}
	r.mustPrepare(o, q, bad)
	bad.gate.Store(1)
	r.faulted(q, o)
	_, err := r.prepare(&Owner{Plan: "p"}, []*Queue{q}, r.gated())
	if _, wrong := expect[*FaultError](err); wrong != nil {
		t.Error(wrong)
	}
	r.must(q.Forget(r.soon(), o))

	gone, err := r.node.Acquire(r.soon(), r.dev, place(1), place(0))
	r.must(err)
	r.node.Release(gone)
	if _, err := r.prepare(o, []*Queue{gone}, r.gated()); !errors.Is(err, ErrEnded) {
		t.Errorf("got %v, want ErrEnded", err)
	}
}
