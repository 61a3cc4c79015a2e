package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/rank"
)

// killer ends the goroutine that comes to a step of a rank, once, in one way.
type killer struct {
	step  inject.Step
	rank  int
	way   string
	once  sync.Once
	armed atomic.Bool
	after atomic.Int64 // how often the step is passed first
}

func (k *killer) inject(step inject.Step, rank int) error {
	if step != k.step || rank != k.rank || !k.armed.Load() || k.after.Add(-1) >= 0 || !k.armed.CompareAndSwap(true, false) {
		return nil
	}
	switch k.way {
	case "panic":
		panic(errInjected)
	case "Goexit":
		runtime.Goexit()
	}
	return fmt.Errorf("%w at %s", errInjected, step)
}

// marked are the steps at which a rank is killed, with the operation that comes
// to them. Two doorbells are rung before the third, which can no longer be
// taken back.
var marked = []struct {
	op    string
	step  inject.Step
	after int64
}{
	{"New", inject.Validate, 0},
	{"New", inject.Gates, 0},
	{"New", inject.Encode, 0},
	{"New", inject.Reserve, 0},
	{"New", inject.Ring, 0},
	{"New", inject.Ring, 1},
	{"round", inject.Start, 0},
	{"round", inject.Wait, 0},
	{"round", inject.HandBack, 0},
	{"NextRound", inject.Reserve, 0},
	{"NextRound", inject.Ring, 0},
	{"NextRound", inject.Ring, 1},
	{"round", inject.Close, 0},
}

// TestARankThatIsKilledAtAnyStepGivesEveryOtherRankAnError has the others live
// under contexts of their own, which nobody cancels: what ends their calls is
// the library. They must end within a second of their deadline, and do so long
// before it.
func TestARankThatIsKilledAtAnyStepGivesEveryOtherRankAnError(t *testing.T) {
	const ranks = 3
	for _, m := range marked {
		for _, way := range []string{"error", "panic", "Goexit"} {
			for victim := range ranks {
				if m.step == inject.Gates && victim > 0 {
					continue // it is done once for all ranks
				}
				t.Run(fmt.Sprintf("%s, %s %d, %s, rank %d", m.op, m.step, m.after, way, victim), func(t *testing.T) {
					t.Parallel()
					k := &killer{step: m.step, rank: victim, way: way}
					k.after.Store(m.after)
					killed(t, ranks, m.op, k)
				})
			}
		}
	}
}

// lived is how one rank's body ended.
type lived struct {
	err      error
	returned bool // it was not ended by a panic or Goexit
	took     time.Duration
}

// killed runs a world in which k strikes, and then another over its queues.
func killed(t *testing.T, ranks int, op string, k *killer) {
	const deadline = 20 * time.Second
	cfg := world{ranks: ranks, cfg: rank.NodeConfig{Inject: k.inject}}.config(t)
	ends := make([]lived, ranks)
	ready := newGathering(ranks)
	err := rank.Run(context.Background(), cfg, func(ctx context.Context, r *rank.Rank) (err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
		defer cancel()
		defer r.Sync(ctx) // what a kernel still writes is sent as it stands, and the race detector would tell
		end := &ends[r.ID()]
		began := time.Now()
		defer func() { end.err, end.took = err, time.Since(began) }()
		err = twoRounds(ctx, r, op, k, ready)
		end.returned = true
		return err
	})
	if err == nil {
		t.Error("the world has no error")
	}
	if k.way != "Goexit" && !errors.Is(err, errInjected) {
		t.Errorf("the world's error is %v, which does not wrap what the rank died of", err)
	}
	dead := 0
	for r, end := range ends {
		switch {
		case !end.returned:
			dead++
		case end.err == nil:
			t.Errorf("rank %d has no error", r)
		case errors.Is(end.err, context.DeadlineExceeded):
			t.Errorf("rank %d learned of it only by its deadline: %v", r, end.err)
		}
		if end.took > deadline+time.Second {
			t.Errorf("rank %d ended %v after its deadline", r, end.took-deadline)
		}
	}
	if k.armed.Load() {
		t.Error("nobody was killed")
	}
	if dead > 1 || dead == 1 && k.way == "error" {
		t.Errorf("%d ranks were ended", dead)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Errorf("%d queues are left", len(qs))
	}
	world{ranks: ranks, node: cfg.Node}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 8)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		return errors.Join(g.rounds(ctx, p, 2), p.Close(ctx))
	})
}

// twoRounds is two rounds of a plan. Whoever is not killed goes on until something
// fails, and a collective at the latest does.
func twoRounds(ctx context.Context, r *rank.Rank, op string, k *killer, ready *gathering) error {
	g, err := newRig(ctx, r, shape{chunks: 2, rows: 2, cols: 64}, 7)
	if err != nil {
		return err
	}
	arm := func(at string) error {
		if at != op {
			return nil
		}
		err := ready.meet(ctx)
		k.once.Do(func() { k.armed.Store(true) })
		return err
	}
	if err := arm("New"); err != nil {
		return err
	}
	p, err := New(ctx, r, g.out, g.mine)
	if err != nil {
		return err
	}
	if err := arm("round"); err != nil {
		return err
	}
	if err := g.round(ctx, p); err != nil {
		return err
	}
	if err := arm("NextRound"); err != nil {
		return err
	}
	if err := p.NextRound(ctx); err != nil {
		return err
	}
	if err := g.round(ctx, p); err != nil {
		return err
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	return r.Barrier(ctx)
}
