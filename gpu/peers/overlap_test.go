//go:build cgo && linux

package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/handcuda"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/schedule"
)

// product is a matrix product of which each rank computes some rows, that all
// ranks gather: M = N = K = dim.
type product struct {
	*member
	dim     int
	out     *heap.Tensor // dim × dim
	a       *heap.Tensor // the rank's rows, and a few more to begin at
	b       *heap.Tensor // dim × dim
	sched   schedule.Schedule
	chunks  int          // of all ranks
	gates   *heap.Tensor // of chains by hand: a gate row for each chunk
	handle  *heap.Tensor // for chains by hand
	plan    *plan.Plan
	chain   []*handcuda.Chain
	loop    []*handcuda.Chain // the rank's rows in one copy to each peer
	turn    uint64
	round   uint64 // of chains by hand
	gather  *outputs
	scratch [2][]byte
}

// outputs is where ranks compare what they have.
type outputs struct{ own [][]byte }

// matmul is the built-in product.
var matmul = &kernels.Kernel{Name: "matmul"}

const (
	edge       = 128 // rows and columns of the product's tiles
	groupRows  = 8   // tile rows that it walks together
	shifts     = 8   // rows at which a may begin, so that turns differ
	elementLen = 2
)

// productGrid fills an H200: two CTAs on each of its multiprocessors.
func productGrid() hip.Grid {
	return choice(hip.Grid{Blocks: 264, Threads: 128}, hip.Grid{Blocks: 4, Threads: 2})
}

func (p *product) rows() int { return p.dim / p.Size() }

func newProduct(ctx context.Context, m *member, o *outputs, dim, steps int) (*product, error) {
	p := &product{member: m, dim: dim, gather: o}
	for _, t := range []struct {
		to   **heap.Tensor
		rows int
	}{{&p.out, dim}, {&p.a, p.rows() + shifts}, {&p.b, dim}} {
		var err error
		if *t.to, err = m.Zeros(ctx, heap.BFloat16, t.rows, dim); err != nil {
			return nil, err
		}
	}
	var err error
	tiles := schedule.Tile{Rows: edge, Cols: edge}
	down, across := (p.rows()+edge-1)/edge, (dim+edge-1)/edge
	p.sched, err = schedule.TileChunks(p.mine().Window(), tiles, steps, schedule.Options{
		Order: func(step int) int { return kernels.TileOf(step, down, across, groupRows) },
	})
	if err != nil {
		return nil, err
	}
	p.chunks = len(p.sched) * m.Size()
	if p.gates, err = m.Zeros(ctx, heap.Uint64, p.chunks, rowWords); err != nil {
		return nil, err
	}
	writers := func(c int) int { return p.sched[c].Writers }
	if p.handle, err = m.byHandHandle(ctx, p.gates, len(p.sched), writers); err != nil {
		return nil, err
	}
	if err := p.inputs(); err != nil {
		return nil, err
	}
	p.byHand()
	p.plan, err = plan.NewAllGather(ctx, m.Rank, p.out, p.sched)
	return p, err
}

func (p *product) mine() *heap.Tensor { return p.out.Rows(p.ID()*p.rows(), (p.ID()+1)*p.rows()) }

// inputs writes a and b: bf16 of both signs, less than 1, so that no sum
// overflows; of b the same on all ranks.
func (p *product) inputs() error {
	block := make([]byte, p.dim*elementLen)
	fill := func(t *heap.Tensor, source uint64) error {
		rng := rand.New(rand.NewPCG(source, 11))
		for row := range t.Shape()[0] {
			if row%64 == 0 { // rows repeat, turned
				for i := 0; i < len(block); i += elementLen {
					x := math.Float32bits(rng.Float32()*2 - 1)
					block[i], block[i+1] = byte(x>>16), byte(x>>24)
				}
			}
			block = append(block[elementLen:], block[:elementLen]...)
			if err := t.Rows(row, row+1).Write(block); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(fill(p.a, uint64(p.ID())+1), fill(p.b, 1<<20))
}

func (p *product) first() int { return p.ID() * len(p.sched) }

func (p *product) byHand() {
	own := p.mine()
	p.chain, p.loop = make([]*handcuda.Chain, p.Size()), make([]*handcuda.Chain, p.Size())
	for peer := range after(p.ID(), p.Size()) {
		var gated []handcuda.Chunk
		for i, ch := range p.sched {
			c := handcuda.Chunk{
				Gate:   gateWord(p.gates, p.first()+i, p.ID(), kernels.GateReady),
				Signal: gateWord(p.gates, p.first()+i, peer, kernels.GateArrival),
			}
			for _, r := range ch.Regions {
				c.Copies = append(c.Copies, handcuda.Copy{
					Src: base(p.out, p.ID()) + uint64(r.Offset), Dst: base(p.out, peer) + uint64(r.Offset),
					Width: int(r.Width), Rows: int(r.Height), Pitch: int(r.Pitch),
				})
			}
			gated = append(gated, c)
		}
		whole := handcuda.Copy{Src: base(own, p.ID()), Dst: base(own, peer), Width: int(own.Size()), Rows: 1}
		p.chain[peer] = handcuda.NewChain(gated)
		p.loop[peer] = handcuda.NewChain([]handcuda.Chunk{{Copies: []handcuda.Copy{whole}}})
	}
}

// produce launches the product, and behind it a program.
func (p *product) produce(h any, steps int, then func(*kernels.List)) (func() error, error) {
	p.turn++
	prog := kernels.NewProgram(1)
	l := prog.On(0)
	then(l)
	p.ring(l)
	if err := p.put(prog); err != nil {
		return nil, err
	}
	a := p.a.Rows(int(p.turn%shifts), int(p.turn%shifts)+p.rows())
	return func() error {
		err := p.Launch(matmul, productGrid(), h, p.out, p.mine().Window().Offset, p.dim*elementLen, a, p.b,
			p.rows(), p.dim, p.dim, steps, groupRows)
		if err != nil {
			return err
		}
		return p.Launch(kernels.Script, hip.Grid{Blocks: 1}, h, p.script)
	}, nil
}

// alone is the product with no marks.
func (p *product) alone(ctx context.Context) error {
	launch, err := p.produce(0, 1, func(*kernels.List) {})
	if err != nil {
		return err
	}
	return p.timed(ctx, "compute", func() error {
		return errors.Join(launch(), p.heard(ctx))
	})
}

// copies are the rank's rows to every peer.
func (p *product) copies(ctx context.Context) error {
	err := p.timed(ctx, "copies", func() error {
		return errors.Join(p.submit(p.loop, 0), p.quiet(ctx))
	})
	return errors.Join(err, p.same(ctx))
}

func (p *product) byChain(ctx context.Context, steps int) error {
	p.round++
	if err := setRound(p.handle, p.round); err != nil {
		return err
	}
	if err := p.submit(p.chain, p.round); err != nil {
		return err
	}
	launch, err := p.produce(base(p.handle, p.ID()), steps, func(l *kernels.List) {
		p.others(func(c int) { l.Await(gateWord(p.gates, c, p.ID(), kernels.GateArrival), p.round) })
	})
	if err != nil {
		return err
	}
	err = p.timed(ctx, "chain", func() error { return errors.Join(launch(), p.heard(ctx)) })
	return errors.Join(err, p.quiet(ctx), p.same(ctx))
}

func (p *product) byPlan(ctx context.Context, steps int) error {
	h, err := p.plan.Start(ctx)
	if err != nil {
		return err
	}
	launch, err := p.produce(h, steps, func(l *kernels.List) {
		p.others(func(c int) { l.Wait(c) })
	})
	if err != nil {
		return err
	}
	err = p.timed(ctx, "plan", func() error { return errors.Join(launch(), p.heard(ctx)) })
	return errors.Join(err, p.plan.Wait(ctx), p.same(ctx), p.plan.NextRound(ctx))
}

// others visits the chunks of the other ranks.
func (p *product) others(visit func(c int)) {
	for c := range p.chunks {
		if c/len(p.sched) != p.ID() {
			visit(c)
		}
	}
}

// same compares every byte of the other ranks' rows with what they have, which
// is not what they had before.
func (p *product) same(ctx context.Context) error {
	if err := p.Sync(ctx); err != nil {
		return err
	}
	o, me := p.gather, p.ID()
	if p.scratch[0] == nil {
		p.scratch = [2][]byte{make([]byte, p.mine().Size()), make([]byte, p.mine().Size())}
	}
	own, got := p.scratch[p.turn%2], p.scratch[1-p.turn%2]
	if err := p.mine().Read(own); err != nil {
		return err
	}
	if bytes.Equal(own, got) {
		return fmt.Errorf("rank %d: the product is that of the turn before", me)
	}
	o.own[me] = own
	if err := p.Barrier(ctx); err != nil {
		return err
	}
	for peer := range p.Size() {
		if peer == me {
			continue
		}
		if err := p.out.Rows(peer*p.rows(), (peer+1)*p.rows()).Read(got); err != nil {
			return err
		}
		if !bytes.Equal(got, o.own[peer]) {
			return fmt.Errorf("rank %d: the rows of rank %d are not what it has", me, peer)
		}
	}
	return p.Barrier(ctx)
}

// A product whose rows all ranks gather: triggered by a plan and by chains by
// hand with the same chunks, beside its two parts one after the other.
func TestFigureOverlapWithTheProduct(t *testing.T) {
	for _, dim := range choice([]int{4096, 8192, 16384}, []int{384}) {
		for _, steps := range choice([]int{132, 264, 528}, []int{2}) {
			tm := newTeam(t)
			o := &outputs{own: make([][]byte, tm.n)}
			tm.run(3*int64(dim+shifts)*int64(dim)*elementLen, func(ctx context.Context, m *member) error {
				p, err := newProduct(ctx, m, o, dim, steps)
				if err != nil {
					return err
				}
				for range choice(5, 2) {
					err := errors.Join(p.alone(ctx), p.copies(ctx), p.byChain(ctx, steps), p.byPlan(ctx, steps))
					if err != nil {
						return err
					}
				}
				return p.plan.Close(ctx)
			})
			report(t, tm, dim, steps)
		}
	}
}

func report(t *testing.T, tm *team, dim, steps int) {
	compute, copies := tm.figure("compute").median, tm.figure("copies").median
	saved := func(what string) float64 {
		return float64(compute+copies-tm.figure(what).median) / float64(min(compute, copies))
	}
	t.Logf("M = N = K = %d on %d ranks, %d tiles a chunk: product %v, copies %v; triggered by a plan %v: %.3f of the ideal saving; by hand %v: %.3f; ratio %.3f",
		dim, tm.n, steps, tm.figure("compute"), tm.figure("copies"), tm.figure("plan"), saved("plan"), tm.figure("chain"), saved("chain"), saved("plan")/saved("chain"))
}
