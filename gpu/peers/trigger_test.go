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
// arrival. The same with chains by hand, and with words that the kernels store
// at each other's GPU, with no copy.
func TestFigureTriggerToArrivalBetweenGPUs(t *testing.T) {
	const chunks = 64
	for _, bytes := range choice([]int64{4 << 10, 64 << 10, 1 << 20}, []int64{4 << 10}) {
		tm := newTeam(t)
		tm.run(int64(chunks*tm.n)*(bytes+4096), func(ctx context.Context, m *member) error {
			g, err := newGather(ctx, m, chunks, bytes)
			if err != nil {
				return err
			}
			for range choice(21, 2) {
				for _, way := range []func(context.Context) error{g.pingPlan, g.pingChain, g.pingWords} {
					if err := g.fill(ctx); err != nil {
						return err
					}
					if err := way(ctx); err != nil {
						return err
					}
				}
			}
			return g.plan.Close(ctx)
		})
		each := func(what string) string {
			f := tm.figure(what)
			return fmt.Sprintf("%v (%v to %v)", f.median/(2*chunks), f.low/(2*chunks), f.high/(2*chunks))
		}
		t.Logf("trigger to arrival between GPUs, %d KiB: plan %s; chain by hand %s; a word alone %s: ratio to the chain %.3f",
			bytes>>10, each("plan"), each("chain"), each("word"), float64(tm.figure("plan").median)/float64(tm.figure("chain").median))
	}
}

// ping runs a program on ranks 0 and 1: rank 0 triggers, rank 1 answers. The
// others trigger all they have at once.
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

func (g *gather) pingChain(ctx context.Context) error {
	if err := g.submit(g.chain, g.turn); err != nil {
		return err
	}
	err := g.ping(ctx, "chain", 0,
		func(l *kernels.List, c int) { l.Store(g.gate(c), g.turn) },
		func(l *kernels.List, c int) { l.Await(g.signal(c, g.ID()), g.turn) })
	if err != nil {
		return err
	}
	return errors.Join(g.quiet(ctx), g.Barrier(ctx), g.check(ctx))
}

// pingWords stores signals at the other GPU.
func (g *gather) pingWords(ctx context.Context) error {
	return g.ping(ctx, "word", 0,
		func(l *kernels.List, c int) { l.Store(g.signal(c, (g.ID()+1)%2), g.turn) },
		func(l *kernels.List, c int) { l.Await(g.signal(c, g.ID()), g.turn) })
}
