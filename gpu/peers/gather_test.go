//go:build cgo && linux

package peers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/handcuda"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/schedule"
)

// gather is an all-gather of some chunks of each rank, made in three ways.
type gather struct {
	*member
	chunks int
	bytes  int64        // of a chunk
	out    *heap.Tensor // a row for each chunk of all ranks
	words  *heap.Tensor // of chains by hand: for each chunk a gate row
	handle *heap.Tensor // for them
	plan   *plan.Plan
	chain  []*handcuda.Chain // to each peer, with gates and signals
	loop   []*handcuda.Chain // the copies alone
	turn   uint64
}

func newGather(ctx context.Context, m *member, chunks int, bytes int64) (*gather, error) {
	g := &gather{member: m, chunks: chunks, bytes: bytes}
	all := chunks * m.Size()
	var err error
	if g.out, err = m.Zeros(ctx, heap.Uint8, all, int(bytes)); err != nil {
		return nil, err
	}
	if g.words, err = m.Zeros(ctx, heap.Uint64, all, rowWords); err != nil {
		return nil, err
	}
	if g.handle, err = m.byHandHandle(ctx, g.words, chunks, func(int) int { return 1 }); err != nil {
		return nil, err
	}
	g.byHand()
	sched, err := schedule.Chunks(g.out.Rows(g.first(), g.first()+chunks).Window(), 1, schedule.Options{})
	if err != nil {
		return nil, err
	}
	g.plan, err = plan.NewAllGather(ctx, m.Rank, g.out, sched)
	return g, err
}

func (g *gather) first() int { return g.ID() * g.chunks }

// gate is the address of the word that a chunk waits for, signal of the one
// that tells of its arrival.
func (g *gather) gate(c int) uint64        { return gateWord(g.words, c, g.ID(), kernels.GateReady) }
func (g *gather) signal(c, on int) uint64  { return gateWord(g.words, c, on, kernels.GateArrival) }
func (g *gather) address(c, on int) uint64 { return base(g.out, on) + uint64(c)*uint64(g.bytes) }

// byHand makes the chains for the plan's chunks.
func (g *gather) byHand() {
	g.chain, g.loop = make([]*handcuda.Chain, g.Size()), make([]*handcuda.Chain, g.Size())
	for peer := range after(g.ID(), g.Size()) {
		var gated, bare []handcuda.Chunk
		for c := g.first(); c < g.first()+g.chunks; c++ {
			copies := []handcuda.Copy{{Src: g.address(c, g.ID()), Dst: g.address(c, peer), Width: int(g.bytes), Rows: 1}}
			gated = append(gated, handcuda.Chunk{Gate: g.gate(c), Signal: g.signal(c, peer), Copies: copies})
			bare = append(bare, handcuda.Chunk{Copies: copies})
		}
		g.chain[peer], g.loop[peer] = handcuda.NewChain(gated), handcuda.NewChain(bare)
	}
}

// submit puts chains on the rank's streams by hand.
func (m *member) submit(chains []*handcuda.Chain, round uint64) error {
	for peer := range after(m.ID(), m.Size()) {
		if _, err := m.team.hands[m.ID()][peer].Submit(chains[peer], uint32(round)); err != nil {
			return err
		}
	}
	return nil
}

// quiet waits until the rank's streams by hand have nothing left to do.
func (m *member) quiet(ctx context.Context) error {
	for peer := range after(m.ID(), m.Size()) {
		if err := spin(ctx, m.team.hands[m.ID()][peer].Idle); err != nil {
			return err
		}
	}
	return nil
}

// workers is how many CTAs write and check data.
func workers() int64 { return choice(int64(128), 4) }

const seed = 0x9EE5

// fill writes this rank's chunks, new in every turn.
func (g *gather) fill(ctx context.Context) error {
	g.turn++
	p := kernels.NewProgram(int(workers()))
	g.shares(p, g.ID(), func(l *kernels.List, r kernels.Region) {
		l.Fill(base(g.out, g.ID()), r, kernels.SeedOf(seed, g.ID(), g.turn))
	})
	return g.do(ctx, p, int(workers()))
}

// shares gives each worker a part of what a rank sends.
func (g *gather) shares(p *kernels.Program, of int, do func(*kernels.List, kernels.Region)) {
	bytes := int64(g.chunks) * g.bytes
	share := bytes / workers()
	for w := range workers() {
		do(p.On(int(w)), kernels.Region{Offset: int64(of)*bytes + w*share, Width: share, Height: 1, Pitch: share})
	}
}

// check compares every byte on this rank.
func (g *gather) check(ctx context.Context) error {
	p := kernels.NewProgram(int(workers()))
	for of := range g.Size() {
		g.shares(p, of, func(l *kernels.List, r kernels.Region) {
			l.Check(base(g.out, g.ID()), r, kernels.SeedOf(seed, of, g.turn), base(g.errors, g.ID()))
		})
	}
	if err := g.do(ctx, p, int(workers())); err != nil {
		return err
	}
	return g.checked(uint64(workers()) * uint64(g.Size()))
}

// checked looks at what so many new checks have found.
func (m *member) checked(n uint64) error {
	found := make([]uint64, 8)
	if err := heap.Read(m.errors, found); err != nil {
		return err
	}
	m.checks += n
	if found[0] != 0 || found[2] != m.checks {
		return fmt.Errorf("rank %d: %d bytes are wrong after %d of %d checks", m.ID(), found[0], found[2], m.checks)
	}
	return nil
}

// byPlan is a round of the plan: from the launch of a kernel that marks the
// rank's chunks and waits for the others, to when the kernel has seen them all.
func (g *gather) byPlan(ctx context.Context) error {
	h, err := g.plan.Start(ctx)
	if err != nil {
		return err
	}
	p := kernels.NewProgram(1)
	l := p.On(0)
	for c := range g.chunks {
		l.Mark(g.plan.FirstChunk() + c)
	}
	g.others(func(c int) { l.Wait(c) })
	g.ring(l)
	if err := g.put(p); err != nil {
		return err
	}
	var began time.Time
	err = g.timed(ctx, "plan", func() error {
		began = time.Now()
		if err := g.Launch(kernels.Script, hip.Grid{Blocks: 1}, h, g.script); err != nil {
			return err
		}
		return g.heard(ctx)
	})
	if err != nil {
		return err
	}
	if err := g.plan.Wait(ctx); err != nil {
		return err
	}
	g.team.note("wait", g.ID(), time.Since(began))
	if err := g.check(ctx); err != nil {
		return err
	}
	return g.plan.NextRound(ctx)
}

// others visits the chunks of the other ranks.
func (g *gather) others(visit func(c int)) {
	for c := range g.chunks * g.Size() {
		if c/g.chunks != g.ID() {
			visit(c)
		}
	}
}

// byChain is the same with chains by hand.
func (g *gather) byChain(ctx context.Context) error {
	if err := g.submit(g.chain, g.turn); err != nil {
		return err
	}
	p := kernels.NewProgram(1)
	l := p.On(0)
	for c := range g.chunks {
		l.Store(g.gate(g.first()+c), g.turn)
	}
	g.others(func(c int) { l.Await(g.signal(c, g.ID()), g.turn) })
	g.ring(l)
	if err := g.put(p); err != nil {
		return err
	}
	err := g.timed(ctx, "chain", func() error {
		if err := g.Launch(kernels.Script, hip.Grid{Blocks: 1}, 0, g.script); err != nil {
			return err
		}
		return g.heard(ctx)
	})
	if err != nil {
		return err
	}
	if err := g.Sync(ctx); err != nil {
		return err
	}
	return g.check(ctx)
}

// byLoop is the copies alone, from their first call to the end of the last.
func (g *gather) byLoop(ctx context.Context) error {
	err := g.timed(ctx, "loop", func() error {
		if err := g.submit(g.loop, 0); err != nil {
			return err
		}
		return g.quiet(ctx)
	})
	if err != nil {
		return err
	}
	return g.check(ctx)
}

// The bandwidth of an all-gather of some chunks from each rank, one alone or
// many back to back: by a plan, by chains by hand, by a loop of copies, taking
// turns in one world.
func TestFigureAllGatherReachesTheRateOfCopiesByHand(t *testing.T) {
	type size struct {
		chunks int
		bytes  int64
	}
	sizes := choice(
		[]size{{1, 1 << 20}, {1, 4 << 20}, {1, 16 << 20}, {1, 64 << 20}, {1, 256 << 20}, {1, 1 << 30},
			{128, 1 << 20}, {128, 4 << 20}, {64, 16 << 20}, {24, 64 << 20}, {8, 256 << 20}, {3, 1 << 30}},
		[]size{{8, 4 << 10}, {1, 64 << 10}})
	for _, s := range sizes {
		t.Run(fmt.Sprintf("%dx%dKiB", s.chunks, s.bytes>>10), func(t *testing.T) { gathers(t, s.chunks, s.bytes) })
	}
}

func gathers(t *testing.T, chunks int, bytes int64) {
	tm := newTeam(t)
	tm.run(int64(chunks*tm.n)*(bytes+4096), func(ctx context.Context, m *member) error {
		g, err := newGather(ctx, m, chunks, bytes)
		if err != nil {
			return err
		}
		return g.turns(ctx, choice(11, 2), g.byPlan, g.byChain, g.byLoop)
	})
	rate := func(what string) float64 {
		return float64(int64(tm.n-1)*int64(chunks)*bytes) / float64(tm.figure(what).median)
	}
	t.Logf("all-gather, %d ranks, %d × %d KiB from each: plan %.1f GB/s a rank, %v; to the end of Wait %.1f; chain by hand %.1f; loop by hand %.1f, %v: ratio to the chain %.3f, to the loop %.3f",
		tm.n, chunks, bytes>>10, rate("plan"), tm.figure("plan"), rate("wait"), rate("chain"), rate("loop"), tm.figure("loop"), rate("plan")/rate("chain"), rate("plan")/rate("loop"))
	if real && bytes >= 64<<20 && rate("plan") < 0.98*rate("loop") {
		t.Errorf("%d KiB: the plan's rate is less than 0.98 of the loop's by hand", bytes>>10)
	}
}

// turns has some ways take turns, each with new data, and ends the plan.
func (g *gather) turns(ctx context.Context, n int, ways ...func(context.Context) error) error {
	for range n {
		for _, way := range ways {
			if err := g.fill(ctx); err != nil {
				return err
			}
			if err := way(ctx); err != nil {
				return err
			}
		}
	}
	return g.plan.Close(ctx)
}
