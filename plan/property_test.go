package plan

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// TestPlansDoWhatTheirModelSays draws worlds, plans that share queues, and
// operations on them in any order, with faults, and compares what every rank
// sees with a model. SLUICE_TORTURE is how long it goes on (default 1s), and
// SLUICE_SEED where it begins.
func TestPlansDoWhatTheirModelSays(t *testing.T) {
	budget := time.Second
	if s := os.Getenv("SLUICE_TORTURE"); s != "" {
		var err error
		if budget, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	checks := flag.Lookup("rapid.checks").Value.String()
	defer flag.Set("rapid.checks", checks)
	defer flag.Set("rapid.seed", "0")
	flag.Set("rapid.checks", "25")
	began := time.Now()
	n := 0
	for time.Since(began) < budget && !t.Failed() {
		flag.Set("rapid.seed", strconv.FormatUint(seed+uint64(n), 10))
		rapid.Check(t, func(rt *rapid.T) { draw(rt).run(rt) })
		n++
	}
	t.Logf("%d worlds from seed %d", 25*n, seed)
}

// ringsOnly says whether every queue of the platform is a ring, whose costs the
// model knows.
var ringsOnly = platform == "host" || platform == "amd"

// modelRing is small, so that plans meet its limit. Where not every queue is a
// ring the model cannot tell which plans fit, and all do.
func modelRing() int64 {
	if !ringsOnly {
		return copyengine.DefaultRingBytes
	}
	return 4096
}

// kind is an operation of a scenario.
type kind int

const (
	opNew kind = iota
	opStart
	opProduce
	opWait
	opNext
	opClose
	opPut
	opKinds
)

// op is one operation, which every rank does; bad is the rank that does it
// wrong, or -1.
type op struct {
	kind  kind
	plan  int
	bad   int
	fault inject.Step // of New and NextRound
	extra bool        // of Produce: bad marks once too often, else once too little
	order []int       // of Produce: in which chunks are marked
}

// scenario is a drawn world and what its ranks do.
type scenario struct {
	ranks  int
	plans  []drawnPlan
	ops    []op
	leave  bool // plans are left to the world
	vanish int  // the rank that ends its body in the middle, or -1
	at     int  // before this operation
	how    string
}

type drawnPlan struct {
	shape
	silent []int // ranks that send nothing
}

func draw(t *rapid.T) *scenario {
	s := &scenario{ranks: rapid.IntRange(1, 4).Draw(t, "ranks"), vanish: -1}
	for range rapid.IntRange(1, 3).Draw(t, "plans") {
		p := drawnPlan{shape: shape{
			chunks:  rapid.IntRange(1, 4).Draw(t, "chunks"),
			rows:    rapid.IntRange(1, 3).Draw(t, "rows"),
			cols:    rapid.IntRange(1, 100).Draw(t, "cols"),
			gap:     rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "gap"),
			writers: rapid.IntRange(1, 3).Draw(t, "writers"),
		}}
		for r := 1; r < s.ranks; r++ {
			if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
				p.silent = append(p.silent, r)
			}
		}
		s.plans = append(s.plans, p)
	}
	for range rapid.IntRange(1, 25).Draw(t, "ops") {
		o := op{
			kind: kind(rapid.IntRange(0, int(opKinds)-1).Draw(t, "kind")),
			plan: rapid.IntRange(0, len(s.plans)-1).Draw(t, "plan"),
			bad:  -1,
		}
		if rapid.IntRange(0, 5).Draw(t, "wrong") == 0 {
			o.bad = rapid.IntRange(0, s.ranks-1).Draw(t, "bad")
			o.extra = rapid.Bool().Draw(t, "extra")
			o.fault = rapid.SampledFrom([]inject.Step{inject.Validate, inject.Encode, inject.Reserve}).Draw(t, "fault")
		}
		o.order = rapid.Permutation([]int{0, 1, 2, 3}[:s.plans[o.plan].chunks]).Draw(t, "order")
		s.ops = append(s.ops, o)
	}
	s.leave = rapid.Bool().Draw(t, "leave")
	if rapid.IntRange(0, 4).Draw(t, "vanishes") == 0 {
		s.vanish = rapid.IntRange(0, s.ranks-1).Draw(t, "rank that vanishes")
		s.at = rapid.IntRange(0, len(s.ops)-1).Draw(t, "when")
		s.how = rapid.SampledFrom([]string{"error", "panic", "return"}).Draw(t, "how")
	}
	return s
}

var errVanished = errors.New("vanished")

// run runs the scenario in a world of its own.
func (s *scenario) run(t *rapid.T) {
	f := &failing{}
	w := world{ranks: s.ranks, cfg: rank.NodeConfig{RingBytes: modelRing(), Inject: f.inject}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	node, err := rank.NewNode(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg := rank.Config{Ranks: s.ranks, HeapBytes: 1 << 20, Platform: platform, Node: node}
	err = rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return s.body(ctx, r, f)
	})
	switch {
	case s.vanish < 0 && err != nil:
		t.Fatal(err)
	case s.vanish >= 0 && s.how != "return" && !errors.Is(err, errVanished):
		t.Fatalf("got %v, want the error of the rank that vanished", err)
	case ctx.Err() != nil:
		t.Fatalf("the world did not end in time: %v", err)
	}
	if qs := node.Queues(); len(qs) > 0 {
		t.Fatalf("%d queues are left", len(qs))
	}
}

// actor is one rank with its plans and its model of them.
type actor struct {
	s *scenario
	*model
	r        *rank.Rank
	rigs     []*rig
	plans    []*Plan // by slot
	all      []*Plan // that were ever made
	handles  []Handle
	dst, src *heap.Tensor
}

func (s *scenario) body(ctx context.Context, r *rank.Rank, f *failing) error {
	// What a kernel still writes when a plan is closed is sent as it stands, and
	// the race detector would tell.
	defer r.Sync(context.WithoutCancel(ctx))
	a := &actor{s: s, model: newModel(s), r: r, plans: make([]*Plan, len(s.plans)), handles: make([]Handle, len(s.plans))}
	for i, d := range s.plans {
		d.shape.silent = slices.Contains(d.silent, r.ID())
		g, err := newRig(ctx, r, d.shape, uint64(i))
		if err != nil {
			return err
		}
		a.rigs = append(a.rigs, g)
	}
	var err error
	if a.dst, err = r.Zeros(ctx, heap.Uint64, s.ranks); err != nil {
		return err
	}
	if a.src, err = r.Zeros(ctx, heap.Uint64, 1); err != nil {
		return err
	}
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	used := r.World().Heap().Used()
	for i, o := range s.ops {
		if s.vanish >= 0 && i == s.at {
			if s.vanish != r.ID() {
				continue
			}
			switch s.how {
			case "panic":
				panic(errVanished)
			case "error":
				return errVanished
			}
			return nil
		}
		if err := a.do(ctx, o, f); err != nil {
			if s.vanish >= 0 && i > s.at {
				return err // whatever it is, it must come
			}
			return fmt.Errorf("op %d, %+v: %w", i, o, err)
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if err := a.account(ctx); err != nil {
			return fmt.Errorf("after op %d, %+v: %w", i, o, err)
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
	}
	if s.leave {
		return nil
	}
	for i := range a.plans {
		if err := a.do(ctx, op{kind: opClose, plan: i, bad: -1}, f); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
	}
	if now := r.World().Heap().Used(); now != used {
		return fmt.Errorf("the heap holds %d bytes when all plans are closed, %d before", now, used)
	}
	return nil
}

// do does an operation and compares what happens with the model.
func (a *actor) do(ctx context.Context, o op, f *failing) error {
	i, me := o.plan, a.r.ID()
	p, g := a.plans[i], a.rigs[i]
	if p == nil && o.kind != opNew && o.kind != opPut {
		return nil
	}
	switch o.kind {
	case opNew:
		if p != nil {
			return nil
		}
		if err := a.arm(ctx, o, f, inject.Validate, inject.Encode, inject.Reserve); err != nil {
			return err
		}
		made, err := New(ctx, a.r, g.out, g.mine)
		if err := a.disarm(ctx, f); err != nil {
			return err
		}
		switch {
		case a.fails(o) && !a.full(i):
			return a.same(err, errInjected)
		case a.fails(o): // whichever comes first
			if err == nil {
				return errors.New("New worked")
			}
			return nil
		case a.full(i):
			return a.same(err, errFull)
		case err != nil:
			return err
		}
		a.plans[i] = made
		a.all = append(a.all, made)
		a.made(i, made.String())
		if ringsOnly && len(made.programs) > 0 && made.programs[0].Cost() != a.m[i].cost() {
			return fmt.Errorf("a round of %v costs %d, want %d", made, made.programs[0].Cost(), a.m[i].cost())
		}
	case opStart:
		h, err := p.Start(ctx)
		if want := a.start(i, me); want != nil {
			return a.same(err, want)
		}
		if err != nil {
			return err
		}
		a.handles[i] = h
	case opProduce:
		return a.produce(o)
	case opWait:
		want := a.wait(i, me)
		soon, cancel := ctx, context.CancelFunc(func() {})
		if want == errTimeout {
			soon, cancel = context.WithTimeout(ctx, 3*time.Millisecond)
		}
		err := p.Wait(soon)
		cancel()
		if want != nil {
			return a.same(err, want)
		}
		if err != nil {
			return err
		}
		return g.check(a.m[i].round, a.s.plans[i].silent...)
	case opNext:
		if err := a.arm(ctx, o, f, inject.Reserve); err != nil {
			return err
		}
		err := p.NextRound(ctx)
		if err := a.disarm(ctx, f); err != nil {
			return err
		}
		fault := a.fails(o) && o.fault == inject.Reserve
		if fault && a.full(i) {
			if err == nil {
				return errors.New("NextRound worked")
			}
			return nil
		}
		if want := a.next(i, fault); want != nil {
			return a.same(err, want)
		}
		return err
	case opClose:
		if err := errors.Join(a.r.Sync(ctx), p.Close(ctx)); err != nil {
			return err
		}
		if err := state(p, a.close(i)); err != nil {
			return err
		}
		a.plans[i] = nil // the slot is free for another
	case opPut:
		return a.put(ctx)
	}
	return nil
}

// fails says that an armed fault hits somebody: silent ranks reserve nothing.
func (a *actor) fails(o op) bool {
	if o.bad < 0 || o.fault != inject.Reserve {
		return o.bad >= 0
	}
	return a.ranks > 1 && !slices.Contains(a.s.plans[o.plan].silent, o.bad)
}

// arm makes one of the steps fail on a rank, between two barriers so that all
// ranks see the same.
func (a *actor) arm(ctx context.Context, o op, f *failing, steps ...inject.Step) error {
	if o.bad < 0 || !slices.Contains(steps, o.fault) {
		return nil
	}
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if a.r.ID() == 0 {
		f.step, f.rank = o.fault, o.bad
		f.after.Store(0)
		f.armed.Store(true)
	}
	return a.r.Barrier(ctx)
}

func (a *actor) disarm(ctx context.Context, f *failing) error {
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	f.armed.Store(false)
	return a.r.Barrier(ctx)
}

// produce has the rank mark its chunks, once a round.
func (a *actor) produce(o op) error {
	i := o.plan
	mine := a.produces(i, a.r.ID())
	defer a.produced(i, o.bad, o.extra)
	g, p, h := a.rigs[i], a.plans[i], a.handles[i]
	if mine && !g.silent {
		err := g.script(h, 1, func(prog *kernels.Program) {
			l := prog.On(0)
			for n, c := range o.order {
				g.fill(l, c, h.Round())
				marks := g.writers
				if o.bad == a.r.ID() && n == 0 {
					marks--
					if o.extra {
						marks += 2
					}
				}
				for range marks {
					l.Mark(p.FirstChunk() + c)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// put puts a word to every peer, or is refused while copies are prepared.
func (a *actor) put(ctx context.Context) error {
	me := a.r.ID()
	if a.ranks == 1 {
		return nil
	}
	peer := (me + 1) % a.ranks
	err := a.r.Put(ctx, peer, a.dst.Rows(me, me+1), a.src, rank.PutOptions{})
	quiet := a.r.Quiet(ctx, peer)
	if len(a.queue[me]) > 0 {
		return errors.Join(a.same(err, errExcluded), a.same(quiet, errExcluded))
	}
	return errors.Join(err, quiet)
}

// same says that an error is of the kind that the model expects.
func (a *actor) same(err, want error) error {
	ok := false
	switch want {
	case errOrder:
		ok = isA[*copyengine.OrderError](err)
	case errState:
		ok = isA[*StateError](err)
	case errTimeout:
		ok = isA[*TimeoutError](err)
	case errMarks:
		ok = isA[*MarksError](err)
	case errFull:
		ok = isA[*copyengine.CapacityError](err)
	case errExcluded:
		ok = isA[*copyengine.ExclusionError](err)
	default:
		ok = errors.Is(err, want)
	}
	if !ok {
		return fmt.Errorf("rank %d: got %v, want %v", a.r.ID(), err, want)
	}
	return nil
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// account compares states and what queues hold with the model.
func (a *actor) account(ctx context.Context) error {
	me := a.r.ID()
	for i, p := range a.plans {
		if p != nil {
			if err := state(p, a.m[i].at[me].state); err != nil {
				return err
			}
		}
	}
	w := hip.NewWaiter()
	for peer := range a.ranks {
		if peer == me {
			continue
		}
		q := a.r.Queue(peer)
		want := int64(0)
		for _, p := range a.all {
			if a.position(p.String(), me) >= 0 {
				want += p.programs[slices.Index(p.queues, q)].Cost()
			} else if err := q.Drain(ctx, w, &p.owner); err != nil {
				return err
			}
		}
		if held := q.Snapshot().Held; held != want {
			return fmt.Errorf("rank %d: queue to %d holds %d bytes, want %d", me, peer, held, want)
		}
	}
	return nil
}
