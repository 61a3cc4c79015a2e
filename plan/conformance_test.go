package plan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// The world of the model: see plan/model.
const (
	modelRanks   = 2
	modelPlans   = 2
	modelRounds  = 2
	modelWriters = 2 // of a plan's first chunk
)

// happening is an event that can be seen of a run, and of the model: its name
// and the figures that tell it from others of that name.
type happening struct {
	name string
	args [3]int
}

func (h happening) String() string { return fmt.Sprint(h.name, h.args) }

// history is what happened in a run, in order. What takes effect later than it
// is noted is noted before anything can depend on it.
type history struct {
	mu     sync.Mutex
	events []happening
}

func (h *history) note(name string, args ...int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := happening{name: name}
	copy(e.args[:], args)
	h.events = append(h.events, e)
}

// The outcomes of a rendezvous and of a Wait, as figures of a happening.
const (
	outcomeOK = iota
	outcomeRefused
	outcomeBroken
)

// course is how a run of the model's program goes: at one step something
// happens to one rank, or all of them turn to Close.
type course struct {
	mishap string
	step   int
	rank   int
	plan   int    // of a Close that is cut
	orders [2]int // the plan that each rank closes first
	ends   bool   // a rank that fails ends its body instead of closing
}

// steps of the model's program: New of each plan, then for each round Start of
// each, then Wait and NextRound of one after the other.
const (
	perRound = 3 * modelPlans
	lastStep = modelPlans + modelRounds*perRound
	newSteps = modelPlans
)

// mishaps are what can happen, and at which steps: of New and NextRound, of
// Start, of Wait, or at any.
var mishaps = []struct {
	name string
	at   func(step int) bool
}{
	{"none", anywhere}, {"all close", anywhere}, {"one closes", anywhere}, {"body ends", anywhere}, {"close is cut", anywhere},
	{"rejects", prepares}, {"cannot reserve", prepares}, {"ring fails", prepares}, {"wrong call", prepares}, {"withdraws", prepares},
	{"extra mark", starts}, {"marks late", starts}, {"wait ends", waits},
}

// place is where a step is in its round, below 0 for New.
func place(step int) int {
	if step < newSteps {
		return -1
	}
	return (step - newSteps) % perRound
}

func anywhere(int) bool    { return true }
func starts(step int) bool { return place(step) >= 0 && place(step) < modelPlans }
func waits(step int) bool  { return place(step) >= modelPlans && place(step)%2 == 0 }
func nexts(step int) bool {
	return place(step) >= modelPlans && place(step)%2 == 1 && step < lastStep-perRound
}
func prepares(step int) bool { return place(step) < 0 || nexts(step) }

// courses has every mishap at steps that a seed draws.
func courses(seed uint64, each int) (cs []course) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, m := range mishaps {
		for range each {
			c := course{mishap: m.name, rank: rnd.IntN(modelRanks), plan: rnd.IntN(modelPlans), ends: rnd.IntN(3) == 0}
			for c.step = rnd.IntN(lastStep); !m.at(c.step); c.step = rnd.IntN(lastStep) {
			}
			c.orders = [2]int{rnd.IntN(modelPlans), rnd.IntN(modelPlans)}
			cs = append(cs, c)
		}
	}
	return cs
}

// runCourse runs a course and returns what happened.
func runCourse(t *testing.T, c course) []happening {
	t.Helper()
	h := &history{}
	f := &failing{}
	var plans [modelPlans]*shared
	var mu sync.Mutex
	cfg := rank.NodeConfig{RingBytes: 4096, Inject: f.inject}
	cfg.Intercept = func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if p.Op != sdma.OpAtomic {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		for i, s := range plans {
			if s != nil && s.tables[to.Device].addr(s.tables[to.Device].gate(from.Device, kernels.GateArrival)) == p.Atomic.Addr {
				h.note("Send", from.Device, to.Device, i)
			}
		}
		return nil
	}
	made := func(i int, p *Plan) {
		mu.Lock()
		defer mu.Unlock()
		plans[i] = p.shared
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w := world{ranks: modelRanks, cfg: cfg}
	_ = rank.Run(ctx, w.config(t), func(ctx context.Context, r *rank.Rank) error {
		w := &walker{course: c, history: h, failing: f, made: made, r: r}
		ctx = context.WithoutCancel(ctx)
		w.walk(ctx)
		err := r.Sync(ctx)
		h.note("End", r.ID())
		return errors.Join(err, errVanished)
	})
	if ctx.Err() != nil {
		t.Fatalf("%+v does not end:\n%v", c, h.events)
	}
	return h.events
}

// TestModelAndCodeAgree runs the model's program with the real ranks, plans,
// queues and engines, and has the model follow what happened: some courses with
// each mishap, as many as SLUICE_COURSES says, from where SLUICE_SEED does.
func TestModelAndCodeAgree(t *testing.T) {
	hostOnly(t, "engines that tell of every packet")
	each := 1
	if s := os.Getenv("SLUICE_COURSES"); s != "" {
		var err error
		if each, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range courses(seedOr(t, 1), each) {
		t.Run(fmt.Sprint(i, ", ", c.mishap), func(t *testing.T) {
			t.Parallel()
			events := runCourse(t, c)
			if !lenient.follows(t, events) {
				t.Errorf("%+v: the model cannot do this:\n%v", c, events)
			}
		})
	}
}

// seedOr is SLUICE_SEED, or another where it says nothing.
func seedOr(t *testing.T, seed uint64) uint64 {
	t.Helper()
	if s := os.Getenv("SLUICE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// TestTheModelFollowsNoRunThatBreaksARule changes what happened in a run, so
// that it breaks one.
func TestTheModelFollowsNoRunThatBreaksARule(t *testing.T) {
	hostOnly(t, "engines that tell of every packet")
	events := runCourse(t, course{mishap: "none"})
	if !strict.follows(t, events) {
		t.Fatalf("the model cannot do this:\n%v", events)
	}
	find := func(name string, args ...int) int {
		e := happening{name: name}
		copy(e.args[:], args)
		return slices.Index(events, e)
	}
	// moved has the event at from happen just before that at to.
	moved := func(from, to int) []happening {
		h := slices.Delete(slices.Clone(events), from, from+1)
		return slices.Insert(h, to, events[from])
	}
	changed := func(at int, to happening) []happening {
		h := slices.Clone(events)
		h[at] = to
		return h
	}
	for rule, h := range map[string][]happening{
		"a chunk is sent behind all its marks":      moved(find("Send", 0, 1, 0), find("Mark", 0, 0)+1),
		"a chunk has all its marks when it is sent": slices.Delete(slices.Clone(events), find("Mark", 0, 0), find("Mark", 0, 0)+1),
		"a chunk is marked behind Start":            moved(find("Mark", 1, 0), find("Start", 1, 0)),
		"a chunk is sent once a round":              slices.Insert(slices.Clone(events), find("Wait", 0, 0), happening{"Send", [3]int{0, 1, 0}}),
		"chunks are sent in order":                  moved(find("Send", 0, 1, 1), find("Send", 0, 1, 0)),
		"Wait returns behind the last arrival":      moved(find("Wait", 1, 0), find("Send", 0, 1, 0)),
		"all ranks get the same verdict":            changed(find("Take", 1, 0), happening{"Take", [3]int{1, 0, outcomeRefused}}),
		"nothing starts before all have come":       moved(find("Start", 1, 0), 0),
	} {
		if strict.follows(t, h) {
			t.Errorf("%s: the model can do this:\n%v", rule, h)
		}
	}
}
