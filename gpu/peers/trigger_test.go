//go:build cgo && linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// Two kernels trigger chunks in turn: each marks its next chunk when the
// other's has arrived. Half of the time for two is that from trigger to
// arrival. The same with chains by hand, marked in the same way or with bare
// stores to their gates, and with words that the kernels store at each other's
// GPU, with no copy.
func TestFigureTriggerToArrivalBetweenGPUs(t *testing.T) {
	const chunks = 64
	for _, bytes := range choice([]int64{4 << 10, 64 << 10, 1 << 20}, []int64{4 << 10}) {
		tm := newTeam(t)
		tm.run(int64(chunks*tm.n)*(bytes+4096), func(ctx context.Context, m *member) error {
			g, err := newGather(ctx, m, chunks, bytes)
			if err != nil {
				return err
			}
			return g.turns(ctx, choice(21, 2), g.pingPlan, g.pingMarked, g.pingChain, g.pingWords)
		})
		each := func(what string) string {
			f := tm.figure(what)
			return fmt.Sprintf("%v (%v to %v)", f.median/(2*chunks), f.low/(2*chunks), f.high/(2*chunks))
		}
		plan, marked := tm.figure("plan").median, tm.figure("marked").median
		t.Logf("trigger to arrival between GPUs, %d KiB: plan %s; chain by hand that kernels mark and wait for in the same way %s, with bare stores and loads %s; a word alone %s: ratio to the chain %.3f",
			bytes>>10, each("plan"), each("marked"), each("chain"), each("word"), float64(plan)/float64(marked))
		if real && float64(plan) > 1.10*float64(marked) {
			t.Errorf("%d KiB: the plan takes more than 1.10 times what the chain by hand does", bytes>>10)
		}
	}
}

// ping runs a program on ranks 0 and 1: rank 0 triggers, rank 1 answers. The
// others trigger all they have when these are done.
func (g *gather) ping(ctx context.Context, what string, h any, trigger, await func(l *kernels.List, c int)) error {
	p := kernels.NewProgram(1)
	l := p.On(0)
	for i := range g.chunks {
		switch g.ID() {
		case 0:
			trigger(l, i)
			await(l, g.chunks+i)
		case 1:
			await(l, i)
			trigger(l, g.chunks+i)
		default:
			await(l, 2*g.chunks-1)
			trigger(l, g.first()+i)
		}
	}
	g.ring(l)
	if err := g.put(p); err != nil {
		return err
	}
	return g.timed(ctx, what, func() error {
		if err := g.Launch(kernels.Script, hip.Grid{Blocks: 1}, h, g.script); err != nil {
			return err
		}
		return g.heard(ctx)
	})
}

func (g *gather) pingPlan(ctx context.Context) error {
	h, err := g.plan.Start(ctx)
	if err != nil {
		return err
	}
	err = g.ping(ctx, "plan", h,
		func(l *kernels.List, c int) { l.Mark(c) },
		func(l *kernels.List, c int) { l.Wait(c) })
	if err != nil {
		return err
	}
	return errors.Join(g.plan.Wait(ctx), g.check(ctx), g.plan.NextRound(ctx))
}

// pingChain stores to the gates of chains by hand, and looks at their signals.
func (g *gather) pingChain(ctx context.Context) error {
	return g.pingHand(ctx, "chain", 0,
		func(l *kernels.List, c int) { l.Store(g.gate(c), g.turn) },
		func(l *kernels.List, c int) { l.Await(g.signal(c, g.ID()), g.turn) })
}

// pingMarked marks and waits as with a plan.
func (g *gather) pingMarked(ctx context.Context) error {
	marks := make([]uint64, g.chunks*g.Size()) // of all rounds before
	for i := range marks {
		marks[i] = g.turn - 1
	}
	off := g.words.Block().Offset() + kernels.GateWriters
	err := errors.Join(setRound(g.handle, g.turn), g.words.Memory().StoreWords(off, kernels.GateRow, marks))
	if err != nil {
		return err
	}
	return g.pingHand(ctx, "marked", g.handle,
		func(l *kernels.List, c int) { l.Mark(c) },
		func(l *kernels.List, c int) { l.Wait(c) })
}

func (g *gather) pingHand(ctx context.Context, what string, h any, trigger, await func(l *kernels.List, c int)) error {
	if err := g.submit(g.chain, g.turn); err != nil {
		return err
	}
	if err := g.ping(ctx, what, h, trigger, await); err != nil {
		return err
	}
	return errors.Join(g.quiet(ctx), g.Barrier(ctx), g.check(ctx))
}

// pingWords stores signals at the other GPU.
func (g *gather) pingWords(ctx context.Context) error {
	return g.ping(ctx, "word", 0,
		func(l *kernels.List, c int) { l.Store(g.signal(c, (g.ID()+1)%2), g.turn) },
		func(l *kernels.List, c int) {
			if g.ID() < 2 {
				l.Await(g.signal(c, g.ID()), g.turn)
			}
		})
}
