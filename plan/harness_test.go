package plan

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

func TestMain(m *testing.M) {
	if platform == "nvidia" {
		flag.Parse()
		flag.Set("test.parallel", "1") // worlds side by side want more streams than a device has
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		for _, d := range dirs {
			_ = os.RemoveAll(d)
		}
		os.Exit(status)
	}))
}

// platform is where the tests run; SLUICE_PLATFORM chooses.
var platform = cmp.Or(os.Getenv("SLUICE_PLATFORM"), "host")

// hostOnly skips a test of what only the host platform has.
func hostOnly(t *testing.T, what string) {
	t.Helper()
	only(t, what, "host")
}

// only skips a test of what only some platforms have.
func only(t *testing.T, what string, platforms ...string) {
	t.Helper()
	if !slices.Contains(platforms, platform) {
		t.Skipf("only %v has %s", platforms, what)
	}
}

// bubble runs a test in a bubble where time takes none, if its platform's work
// is all done by goroutines.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if platform == "host" {
		synctest.Test(t, f)
	} else {
		f(t)
	}
}

// patience bounds what should take no time at all.
const patience = 60 * time.Second

// ringBytes is small, so that tests meet its limits and its end.
const ringBytes = 16 << 10

type world struct {
	ranks int
	node  *rank.Node
	cfg   rank.NodeConfig
	close time.Duration
}

// config makes a node of its own for the test, so that tests run side by side.
func (w world) config(t testing.TB) rank.Config {
	t.Helper()
	if w.node == nil {
		if w.cfg.RingBytes == 0 {
			w.cfg.RingBytes = ringBytes
		}
		var err error
		if w.node, err = rank.NewNode(w.cfg); err != nil {
			t.Fatal(err)
		}
	}
	return rank.Config{Ranks: w.ranks, HeapBytes: 1 << 20, Platform: platform, Node: w.node, CloseTimeout: w.close}
}

// run runs body on every rank of a world of its own, and fails the test if a
// rank fails.
func (w world) run(t testing.TB, body func(ctx context.Context, r *rank.Rank) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := rank.Run(ctx, w.config(t), body); err != nil {
		t.Fatal(err)
	}
}

// shape is what each rank of a test sends.
type shape struct {
	chunks  int
	rows    int // of each chunk
	cols    int // bytes of each row
	gap     int // bytes between rows: with any, regions are windows
	writers int
	silent  bool // this rank sends nothing
}

// rig is a rank with a buffer, its part of a schedule, and programs for the
// script kernel.
type rig struct {
	*rank.Rank
	shape
	out      *heap.Tensor
	mine     schedule.Schedule
	programs []*heap.Tensor
	launched int
	seed     uint64
	bytes    []byte
}

// programWords is room for a script, and programsPerRig how many may be under
// way at once.
const (
	programWords   = 2048
	programsPerRig = 4
)

// newRig is collective. seed tells data of one rig from another's.
func newRig(ctx context.Context, r *rank.Rank, s shape, seed uint64) (*rig, error) {
	s.writers = max(s.writers, 1)
	g := &rig{Rank: r, shape: s, seed: seed}
	var err error
	if g.out, err = r.Zeros(ctx, heap.Uint8, r.Size()*s.chunks*s.rows, s.cols+s.gap); err != nil {
		return nil, err
	}
	g.bytes = make([]byte, g.out.Size())
	if !s.silent {
		if g.mine, err = g.chunks(r.ID()); err != nil {
			return nil, err
		}
	}
	for range programsPerRig {
		p, err := r.Zeros(ctx, heap.Uint64, programWords)
		if err != nil {
			return nil, err
		}
		g.programs = append(g.programs, p)
	}
	return g, nil
}

// chunks is the schedule of a rank that is not silent.
func (g *rig) chunks(of int) (schedule.Schedule, error) {
	per := g.shape.chunks * g.rows
	w := g.out.Rows(of*per, (of+1)*per).Cols(0, g.cols).Window()
	return schedule.Chunks(w, g.rows, schedule.Options{Writers: g.writers})
}

// script launches a script; build gets its program.
func (g *rig) script(h Handle, ctas int, build func(*kernels.Program)) error {
	t := g.programs[g.launched%programsPerRig]
	g.launched++
	p := kernels.NewProgram(ctas)
	build(p)
	words := p.Words()
	if len(words) > programWords {
		return fmt.Errorf("a script of %d words has no room", len(words))
	}
	if err := heap.Write(t.Rows(0, len(words)), words); err != nil {
		return err
	}
	var arg any = h
	if h == (Handle{}) {
		arg = 0
	}
	return g.Launch(kernels.Script, kernels.Grid(ctas), arg, t)
}

// buffer is the address that data's positions count from.
func (g *rig) buffer() uint64 {
	return g.Memory().Addr() + uint64(g.out.Block().Offset())
}

// fill adds the data of one of the rank's chunks for a round to a script.
func (g *rig) fill(l *kernels.List, chunk int, round uint64) {
	for _, reg := range g.mine[chunk].Regions {
		l.Fill(g.buffer(), kernels.Region(reg), kernels.SeedOf(g.seed, g.ID(), round))
	}
}

// produce launches a producer that fills and marks the rank's chunks in the
// given order, or in schedule order.
func (g *rig) produce(p *Plan, h Handle, order ...int) error {
	if g.silent {
		return nil
	}
	if order == nil {
		for c := range g.mine {
			order = append(order, c)
		}
	}
	return g.script(h, 1, func(prog *kernels.Program) {
		l := prog.On(0)
		for _, c := range order {
			g.fill(l, c, h.Round())
			for range g.writers {
				l.Mark(p.FirstChunk() + c)
			}
		}
	})
}

// check reads the whole buffer and checks every byte of every rank's chunks.
// silent says which ranks send nothing.
func (g *rig) check(round uint64, silent ...int) error {
	for of := range g.Size() {
		if slices.Contains(silent, of) {
			continue
		}
		if wrong, err := g.wrong(of, round); err != nil || wrong > 0 {
			return errors.Join(err, fmt.Errorf("rank %d, round %d: %d bytes of rank %d are wrong", g.ID(), round, wrong, of))
		}
	}
	return nil
}

// wrong counts the bytes of a rank's chunks here that are not those of round.
func (g *rig) wrong(of int, round uint64) (int, error) {
	chunks, err := g.chunks(of)
	if err != nil {
		return 0, err
	}
	if err := g.out.Read(g.bytes); err != nil {
		return 0, err
	}
	wrong := 0
	for _, c := range chunks {
		for _, reg := range c.Regions {
			for row := range reg.Height {
				at := reg.Offset + row*reg.Pitch
				wrong += kernels.CheckPattern(g.bytes[at:at+reg.Width], kernels.SeedOf(g.seed, of, round), uint64(at))
			}
		}
	}
	return wrong, nil
}

// round runs one whole round of a plan and checks it.
func (g *rig) round(ctx context.Context, p *Plan, silent ...int) error {
	h, err := p.Start(ctx)
	if err != nil {
		return err
	}
	if err := g.produce(p, h); err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		return err
	}
	return g.check(h.Round(), silent...)
}

// rounds runs so many rounds, handing each back.
func (g *rig) rounds(ctx context.Context, p *Plan, n int, silent ...int) error {
	for i := range n {
		if i > 0 {
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		if err := g.round(ctx, p, silent...); err != nil {
			return err
		}
	}
	return nil
}

// expect says that an error is of type E.
func expect[E error](err error) (E, error) {
	var e E
	if !errors.As(err, &e) {
		return e, fmt.Errorf("got %v, want a %T", err, e)
	}
	return e, nil
}

// state says that a plan is in a state.
func state(p *Plan, want State) error {
	if got := p.State(); got != want {
		return fmt.Errorf("%v is %v, want %v", p, got, want)
	}
	return nil
}

// gate is a channel that a test's ranks pass together, outside of collectives.
type gathering struct {
	n    int
	mu   sync.Mutex
	here int
	open chan struct{}
}

func newGathering(n int) *gathering { return &gathering{n: n, open: make(chan struct{})} }

// meet waits for the others, whatever they do with the plan.
func (g *gathering) meet(ctx context.Context) error {
	g.mu.Lock()
	if g.here++; g.here == g.n {
		close(g.open)
	}
	g.mu.Unlock()
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// short bounds a wait that is meant to end early.
func short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 20*time.Millisecond)
}

func errorHas(err error, text string) bool { return strings.Contains(err.Error(), text) }
