package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// programWords is room for a script.
const programWords = 2048

// rig is one rank's side of what a plan sends: the tensor, the rank's schedule
// and its kernels. Plans are made on it one after the other.
type rig struct {
	shape
	r        *rank.Rank
	out      *heap.Tensor
	mine     schedule.Schedule
	producer *heap.Tensor // a script's words
	consumer *heap.Tensor
	errors   *heap.Tensor // the consumer's error row
	work     *rank.Stream // that the producer runs on
	side     *rank.Stream // and the consumer
	bytes    []byte

	p    *plan.Plan
	base uint64 // tells the data of one plan from another's
	busy bool   // copies of a plan that was closed may be on their way still
}

// newRig is collective.
func newRig(ctx context.Context, r *rank.Rank, s shape, work, side *rank.Stream) (*rig, error) {
	g := &rig{shape: s, r: r, work: work, side: side}
	var err error
	if g.out, err = r.Zeros(ctx, heap.Uint8, r.Size()*s.chunks*s.rows, s.cols+s.gap); err != nil {
		return nil, err
	}
	for _, t := range []**heap.Tensor{&g.producer, &g.consumer} {
		if *t, err = r.Zeros(ctx, heap.Uint64, programWords); err != nil {
			return nil, err
		}
	}
	if g.errors, err = r.Zeros(ctx, heap.Uint64, kernels.ErrorRow/8); err != nil {
		return nil, err
	}
	g.bytes = make([]byte, g.out.Size())
	g.mine, err = s.schedule(g.out, r.ID())
	return g, err
}

// buffer is the address that data's positions count from.
func (g *rig) buffer() uint64 { return g.r.Memory().Addr() + uint64(g.out.Block().Offset()) }

// flaw is a mark too few of a chunk, or one too many, or one of a chunk that is
// not the rank's; chunk counts over all ranks.
type flaw struct {
	marks int
	chunk int
}

// produce launches the producer: every CTA writes its part of each chunk, in an
// order of its own, and marks it.
func (g *rig) produce(rnd *rand.Rand, h plan.Handle, flaws ...flaw) error {
	if len(g.mine) == 0 && len(flaws) == 0 {
		return nil
	}
	prog := kernels.NewProgram(g.ctas)
	for cta := range g.ctas {
		l := prog.On(cta)
		for _, c := range rnd.Perm(len(g.mine)) {
			if !g.split && c%g.ctas != cta {
				continue
			}
			if oneIn(rnd, 8) {
				l.Delay(time.Duration(rnd.IntN(100)) * time.Microsecond)
			}
			g.fill(l, cta, c, h.Round())
			id := g.p.FirstChunk() + c
			missing := func(f flaw) bool { return f.chunk == id && f.marks < 0 && (cta == 0 || !g.split) }
			if !slices.ContainsFunc(flaws, missing) {
				l.Mark(id)
			}
		}
	}
	grid := kernels.Grid(g.ctas)
	l := prog.On(0)
	for _, f := range flaws {
		if c := f.chunk - g.p.FirstChunk(); f.marks > 0 && c >= 0 && c < len(g.mine) {
			l.Wait(f.chunk) // before all have written their part, a mark would send it unwritten
			grid = kernels.Waits(grid)
		}
		for range f.marks {
			l.Mark(f.chunk)
		}
	}
	return g.launch(g.work, g.producer, prog, grid, h)
}

// fill writes the rows of a chunk that a CTA is responsible for.
func (g *rig) fill(l *kernels.List, cta, c int, round uint64) {
	for _, reg := range g.mine[c].Regions {
		if g.split {
			lo, hi := int64(cta)*reg.Height/int64(g.ctas), int64(cta+1)*reg.Height/int64(g.ctas)
			reg.Offset += lo * reg.Pitch
			reg.Height = hi - lo
		}
		if reg.Height > 0 {
			l.Fill(g.buffer(), kernels.Region(reg), kernels.SeedOf(g.base, g.r.ID(), round))
		}
	}
}

// consume launches a kernel that waits for every peer's chunks and checks them.
func (g *rig) consume(h plan.Handle) error {
	if err := heap.Write(g.errors, make([]uint64, kernels.ErrorRow/8)); err != nil {
		return err
	}
	prog := kernels.NewProgram(1)
	l := prog.On(0)
	for of := range g.r.Size() {
		if of == g.r.ID() {
			continue
		}
		chunks, err := g.schedule(g.out, of)
		if err != nil {
			return err
		}
		for c, ch := range chunks {
			l.Wait(g.first(of) + c)
			for _, reg := range ch.Regions {
				l.Check(g.buffer(), kernels.Region(reg), kernels.SeedOf(g.base, of, h.Round()), g.errors.Addr())
			}
		}
	}
	return g.launch(g.side, g.consumer, prog, kernels.Waits(kernels.Grid(1)), h)
}

// consumed says what the consumer found.
func (g *rig) consumed() error {
	wrong, err := g.r.Load(g.errors, kernels.ErrorBytes/8)
	if err == nil && wrong > 0 {
		err = fmt.Errorf("rank %d: its kernel finds %d wrong bytes", g.r.ID(), wrong)
	}
	return err
}

func (g *rig) launch(on *rank.Stream, t *heap.Tensor, prog *kernels.Program, grid hip.Grid, h plan.Handle) error {
	words := prog.Words()
	if len(words) > programWords {
		return fmt.Errorf("a script of %d words has no room", len(words))
	}
	if err := heap.Write(t.Rows(0, len(words)), words); err != nil {
		return err
	}
	return on.Launch(kernels.Script, grid, h, t)
}

// check compares every byte of the tensor: those of ranks that send with their
// pattern, all others with zero.
func (g *rig) check(round uint64) error {
	if err := g.out.Read(g.bytes); err != nil {
		return err
	}
	pitch := g.cols + g.gap
	for row := range g.r.Size() * g.chunks * g.rows {
		of := row / (g.chunks * g.rows)
		data, gap := g.bytes[row*pitch:][:g.cols], g.bytes[row*pitch+g.cols:][:g.gap]
		wrong := 0
		if g.sends(of) {
			wrong = kernels.CheckPattern(data, kernels.SeedOf(g.base, of, round), uint64(row*pitch))
		} else {
			wrong = nonzero(data)
		}
		if wrong += nonzero(gap); wrong > 0 {
			return errors.Join(errWrong, fmt.Errorf("rank %d, round %d: %d bytes of row %d, which is rank %d's, are wrong", g.r.ID(), round, wrong, row, of))
		}
	}
	return nil
}

// errWrong is wrapped when data is not what it must be.
var errWrong = errors.New("wrong data")

func nonzero(b []byte) (n int) {
	for _, v := range b {
		if v != 0 {
			n++
		}
	}
	return n
}
