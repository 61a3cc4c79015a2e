package rank

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNobodyLeavesABarrierBeforeAllHaveCome(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			t.Parallel()
			var came atomic.Int64
			run(t, config(t, ranks, NodeConfig{RingBytes: 4096}), func(ctx context.Context, r *Rank) error {
				for i := range int64(200) {
					came.Add(1)
					if err := r.Barrier(ctx); err != nil {
						return err
					}
					if n := came.Load(); n < (i+1)*int64(ranks) {
						return fmt.Errorf("barrier %d let rank %d go after %d arrivals", i, r.ID(), n)
					}
				}
				return nil
			})
		})
	}
}

func TestRanksInDifferentCollectivesAllLearnWhoCalledWhat(t *testing.T) {
	t.Parallel()
	run(t, config(t, 4, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		for odd := range 4 { // each rank once
			op := "Barrier"
			if r.ID() == odd {
				op = "Gather"
			}
			err := r.Meet(ctx, &Call{Op: op})
			m, bad := expect[*MismatchError](err)
			if bad != nil {
				return bad
			}
			if m.Rank == odd == (m.OtherRank == odd) || m.Call == m.OtherCall {
				return fmt.Errorf("rank %d called something else, and the error says: %v", odd, err)
			}
			if err := r.Barrier(ctx); err != nil { // and the ranks meet again
				return err
			}
		}
		return nil
	})
}

// The rank that cannot do its share is named to all, whoever comes last.
func TestOneRanksErrorIsEverybodys(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	run(t, config(t, 4, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		for bad := range 4 {
			call := Call{Op: "Save"}
			if r.ID() == bad {
				call.Err = full
			}
			err := r.Meet(ctx, &call)
			v, wrong := expect[*VoteError](err)
			if wrong != nil {
				return wrong
			}
			if v.Rank != bad || v.Call != "Save" || !errors.Is(err, full) {
				return fmt.Errorf("the error is wrong: %v", err)
			}
		}
		return r.Barrier(ctx)
	})
}

// In a bubble a rank's context ends only when the others are known to wait.
func TestAContextWithdrawsARankOnlyBeforeTheLastOneComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			soon, cancel := context.WithCancel(ctx)
			defer cancel()
			switch r.ID() {
			case 0: // withdraws while it and rank 1 wait
				go func() { synctest.Wait(); cancel() }()
			case 2: // comes when that is over
				<-time.After(time.Second)
			}
			err := r.Barrier(soon)
			w, bad := expect[*WithdrawnError](err)
			if bad != nil {
				return bad
			}
			if w.Rank != 0 || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("the error is wrong: %v", err)
			}
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			// Once all have come it is too late: the verdict is for all.
			late, cut := context.WithCancel(ctx)
			defer cut()
			call := Call{Op: "Cut", Decide: func(calls []*Call) error {
				for _, c := range calls {
					c.Value.(context.CancelFunc)()
				}
				return nil
			}, Value: cut}
			return r.Meet(late, &call)
		})
	})
}

func TestARankThatComesCancelledFailsTheCollectiveForAll(t *testing.T) {
	t.Parallel()
	run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		came := ctx
		if r.ID() == 1 {
			came = ended(ctx)
		}
		err := r.Barrier(came)
		// It does not wait, so it withdraws unless it is the last to come.
		var vote *VoteError
		var withdrawn *WithdrawnError
		blamed := errors.As(err, &vote) && vote.Rank == 1 || errors.As(err, &withdrawn) && withdrawn.Rank == 1
		if !blamed || !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the error is wrong: %v", err)
		}
		return r.Barrier(ctx)
	})
}

// Whatever contexts end whenever, the k-th collective has one verdict.
func TestAllRanksTakeTheSameVerdict(t *testing.T) {
	t.Parallel()
	const ranks, meetings = 4, 400
	var verdicts [ranks][meetings]error
	run(t, config(t, ranks, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		dice := rand.New(rand.NewPCG(7, uint64(r.ID())))
		for i := range meetings {
			soon, cancel := context.WithCancel(ctx)
			switch dice.IntN(6) {
			case 0:
				cancel()
			case 1:
				go cancel()
			case 2:
				for range dice.IntN(20) {
					runtime.Gosched()
				}
			}
			verdicts[r.ID()][i] = r.Meet(soon, &Call{Op: "Meeting"})
			cancel()
		}
		return nil
	})
	failed := 0
	for i := range meetings {
		for r := range ranks {
			if verdicts[r][i] != verdicts[0][i] {
				t.Fatalf("meeting %d: rank 0 has %v, rank %d %v", i, verdicts[0][i], r, verdicts[r][i])
			}
		}
		if verdicts[0][i] != nil {
			failed++
		}
	}
	if failed == 0 || failed == meetings {
		t.Errorf("%d of %d meetings failed, which tests nothing", failed, meetings)
	}
}

// A rank that leaves ends what the others wait in, and what they come to later.
func TestARankThatLeavesEndsTheCollectivesOfTheOthers(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		leave func() error
		why   error
	}{
		"with an error": {func() error { return boom }, boom},
		"by a panic":    {func() error { panic(boom) }, boom},
		"by Goexit":     {func() error { runtime.Goexit(); return nil }, ErrGoexit},
		"well":          {func() error { return nil }, ErrReturned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, config(t, 3, NodeConfig{}))
			var mu sync.Mutex
			var gone []error
			err := w.Run(context.Background(), func(ctx context.Context, r *Rank) error {
				if r.ID() == 1 {
					return c.leave()
				}
				ctx = context.WithoutCancel(ctx) // the leaving alone must end the waits
				for range 2 {
					err := r.Barrier(ctx)
					mu.Lock()
					gone = append(gone, err)
					mu.Unlock()
				}
				return nil
			})
			if c.why == ErrReturned {
				if err != nil {
					t.Errorf("every rank ended well, and Run returned %v", err)
				}
			} else if e, bad := expect[*Error](err); bad != nil || e.Rank != 1 || !errors.Is(err, c.why) {
				t.Errorf("got %v, want rank 1's %v", err, c.why)
			}
			for _, err := range gone {
				g, bad := expect[*GoneError](err)
				if bad != nil || g.Rank != 1 || !errors.Is(err, c.why) {
					t.Errorf("got %v, want rank 1 gone because of %v", err, c.why)
				}
			}
			// The next Run has every rank again.
			err = w.Run(context.Background(), func(ctx context.Context, r *Rank) error { return r.Barrier(ctx) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAPanicsErrorHasItsValueAndItsStack(t *testing.T) {
	t.Parallel()
	w := open(t, config(t, 2, NodeConfig{}))
	for _, value := range []any{"out of cheese", 42, errors.New("boom")} {
		err := w.Run(context.Background(), func(ctx context.Context, r *Rank) error {
			if r.ID() == 0 {
				panic(value)
			}
			return r.Barrier(ctx)
		})
		p, bad := expect[*PanicError](err)
		if bad != nil {
			t.Fatal(bad)
		}
		if p.Value != value || p.Stack == "" {
			t.Errorf("the error has %v and a stack of %d bytes", p.Value, len(p.Stack))
		}
	}
}

// The ranks of a collective whose decision panics, or ends its goroutine, have
// all come; none of them may be left waiting.
func TestADecisionThatPanicsFailsTheCollectiveForAll(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		err := r.Meet(ctx, &Call{Op: "Vote", Decide: func([]*Call) error { panic(boom) }})
		if _, bad := expect[*VerdictError](err); bad != nil {
			return bad
		}
		if _, bad := expect[*PanicError](err); bad != nil {
			return bad
		}
		return errors.Join(wantIs(err, boom), r.Barrier(ctx))
	})
	w := open(t, config(t, 3, NodeConfig{}))
	err := w.Run(context.Background(), func(ctx context.Context, r *Rank) error {
		// Whoever decides is gone; the others have its error.
		return r.Meet(ctx, &Call{Op: "Vote", Decide: func([]*Call) error { runtime.Goexit(); return nil }})
	})
	if !errors.Is(err, ErrGoexit) {
		t.Errorf("got %v, want ErrGoexit", err)
	}
}

func TestOneGoroutineMakesARanksCollectiveCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			if r.ID() == 1 {
				<-time.After(time.Second)
				return r.Barrier(ctx)
			}
			first := make(chan error, 1)
			go func() { first <- r.Barrier(ctx) }()
			synctest.Wait()
			_, err := r.Zeros(ctx, 0)
			busy, bad := expect[*BusyError](err)
			if bad == nil && (busy.Rank != 0 || busy.Call != "Zeros") {
				bad = fmt.Errorf("the error is wrong: %v", err)
			}
			c := NewClosing(named("thing"), 2)
			_, busyClose := expect[*BusyError](r.EnterClose(ctx, c))
			return errors.Join(bad, busyClose, <-first)
		})
	})
}

// A rank that came to a Close while it was busy has come all the same.
func TestACloseThatIsRefusedAsBusyDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClosing(named("thing"), 2)
		run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			if r.ID() == 1 {
				<-time.After(time.Second)
				return errors.Join(r.EnterClose(ctx, c), r.Barrier(ctx))
			}
			first := make(chan error, 1)
			go func() { first <- r.Barrier(ctx) }()
			synctest.Wait()
			_, bad := expect[*BusyError](r.EnterClose(ctx, c))
			return errors.Join(bad, <-first)
		})
	})
}

// A Close waits for who has not come, under its context, and those who come
// late find it complete.
func TestACloseWaitsForAllUnderItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClosing(named("thing"), 3)
		run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			switch r.ID() {
			case 0: // is cut, and has come
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				began := time.Now()
				if err := wantIs(r.EnterClose(soon, c), context.DeadlineExceeded); err != nil {
					return err
				}
				if d := time.Since(began); d != time.Second {
					return fmt.Errorf("it waited %v", d)
				}
			case 1: // waits for rank 2
				if err := r.EnterClose(ctx, c); err != nil {
					return err
				}
			case 2:
				<-time.After(time.Minute / 2)
				if err := r.EnterClose(ended(ctx), c); err != nil {
					return err
				}
			}
			return r.Barrier(ctx)
		})
	})
}

func TestTwoRanksThatCloseDifferentThingsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	a, b := NewClosing(named("a"), 2), NewClosing(named("b"), 2)
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		first, second := a, b
		if r.ID() == 1 {
			first, second = b, a
		}
		crossed := 0
		for _, c := range []*Closing{first, second} {
			if err := r.EnterClose(ctx, c); err != nil {
				e, bad := expect[*CrossedError](err)
				if bad != nil {
					return bad
				}
				if crossed++; e.Rank != r.ID() || e.On != c.On.String() {
					return fmt.Errorf("the error is wrong: %v", err)
				}
			}
		}
		if crossed > 1 {
			return errors.New("both its closings were refused")
		}
		return r.Barrier(ctx)
	})
}
