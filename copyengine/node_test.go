package copyengine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

// probes counts the fences that queues have carried.
type probes struct {
	mu    sync.Mutex
	count map[string]int
}

func (p *probes) see(from, to Endpoint, _ uint64, packet *sdma.Packet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if packet.Op == sdma.OpFence {
		p.count[from.String()+"→"+to.String()]++
	}
	return nil
}

func TestAQueueIsMadeAndProbedWhenFirstNeededAndEndsWithItsLastUser(t *testing.T) {
	t.Parallel()
	p := &probes{count: map[string]int{}}
	r := newRig(t, Config{Intercept: p.see})
	acquire := func(from, to int) *Queue {
		q, err := r.node.Acquire(r.soon(), r.dev, place(from), place(to))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if n := len(r.node.Queues()); n > 0 {
		t.Fatalf("a new node has %d queues", n)
	}
	first := acquire(0, 1)
	second, back := acquire(0, 1), acquire(1, 0)
	if first != second || first == back {
		t.Error("a pair has one queue for each direction")
	}
	if qs := r.node.Queues(); len(qs) != 2 || qs[0] != first || qs[1] != back {
		t.Errorf("the node has %d queues, want two in the order in which they were made", len(qs))
	}
	r.node.Release(first)
	if n := len(r.node.Queues()); n != 2 {
		t.Errorf("%d queues are left while both have a user", n)
	}
	w := r.open()
	r.must(second.Put(r.soon(), waiter(), Put{Program: r.compile(second, w)}))
	r.carried(w)
	r.node.Release(second)
	r.node.Release(back)
	if n := len(r.node.Queues()); n > 0 {
		t.Errorf("%d queues are left without a user", n)
	}
	if again := acquire(0, 1); again == first {
		t.Error("a queue that has ended came back")
	} else {
		r.node.Release(again)
	}
	if p.count["host:0→host:1"] != 2 || p.count["host:1→host:0"] != 1 {
		t.Errorf("the queues were probed so often: %v", p.count)
	}
}

// A probe behind a closed gate would never come back.
func TestJoiningAQueueDoesNotProbeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	shut := r.gated()
	o := &Owner{Plan: "p"}
	r.mustPrepare(o, q, shut)
	joined, err := r.node.Acquire(r.soon(), r.dev, place(0), place(1))
	r.must(err)
	if joined != q {
		t.Error("it is another queue")
	}
	r.node.Release(joined)
	shut.gate.Store(1)
	r.must(q.Drain(r.soon(), waiter(), o))
}

func TestKernelsHaveAQueueOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	host := r.queue(0, 1)
	own, err := r.node.AcquireKernel(r.soon(), r.dev, place(0), place(1))
	r.must(err)
	defer r.node.Release(own)
	if own == host || own.Name() == host.Name() {
		t.Errorf("the queues are %s and %s", host.Name(), own.Name())
	}
	o := &Owner{Plan: "p"}
	shut, free := r.gated(), r.open()
	r.mustPrepare(o, host, shut)
	r.must(own.Put(ended(), waiter(), Put{Program: r.compile(own, free)}))
	r.carried(free)
	shut.gate.Store(1)
	r.must(host.Drain(r.soon(), waiter(), o))
}

// A dead engine takes its doorbell and then never answers.
func TestAQueueThatDoesNotAnswerIsAProbeErrorAndLeavesNothing(t *testing.T) {
	dead := errors.New("the engine is dead")
	for name, c := range map[string]struct {
		ctx   time.Duration // of the caller, 0 for none
		fence func() error
		want  error
	}{
		"it fails":               {0, func() error { return dead }, dead},
		"it stalls":              {0, func() error { time.Sleep(time.Minute); return nil }, context.DeadlineExceeded},
		"it stalls for too long": {time.Second, func() error { time.Sleep(3 * time.Second); return nil }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := true
				r := newRig(t, Config{ProbeTimeout: 2 * time.Second, Intercept: func(from, to Endpoint, _ uint64, p *sdma.Packet) error {
					if broken && p.Op == sdma.OpFence && to.Device == 1 {
						return c.fence()
					}
					return nil
				}})
				ctx := context.Background()
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				_, err := r.node.Acquire(ctx, r.dev, place(0), place(1))
				e, bad := expect[*ProbeError](err)
				if bad != nil {
					t.Fatal(bad)
				}
				if e.Queue != "host:0→host:1" || !strings.Contains(e.Engine, "engine") || !errors.Is(err, c.want) {
					t.Errorf("the error is wrong: %v", err)
				}
				if n := len(r.node.Queues()); n > 0 {
					t.Errorf("%d queues are left", n)
				}
				synctest.Wait()
				broken = false
				q := r.queue(0, 1) // and now it is well
				w := r.open()
				r.must(q.Put(r.soon(), waiter(), Put{Program: r.compile(q, w)}))
				r.carried(w)
			})
		})
	}
}

func TestAPlatformWithoutAnEngineIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	_, err := r.node.Acquire(r.soon(), r.dev, Endpoint{Platform: "abacus"}, place(1))
	if err == nil || !strings.Contains(err.Error(), `"abacus"`) {
		t.Errorf("got %v", err)
	}
}

func TestAnEndpointsNameTellsItApart(t *testing.T) {
	for e, want := range map[Endpoint]string{
		{Platform: "host", Device: 3}:                              "host:3",
		{Platform: "nvidia", Memory: "pinned"}:                     "nvidia:0/pinned",
		{Platform: "nvidia", Device: 1, Memory: "device", Slot: 2}: "nvidia:1/device#2",
		{Platform: "host", Slot: 1}:                                "host:0#1",
	} {
		if got := e.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestManyMayAcquireAndReleaseAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	var wg sync.WaitGroup
	for i := range 6 {
		works := make([]work, 10)
		for j := range works {
			works[j] = r.open()
		}
		wg.Go(func() {
			for _, w := range works {
				q, err := r.node.Acquire(context.Background(), r.dev, place(i%2), place(2))
				if err != nil {
					t.Error(err)
					return
				}
				p, err := q.Compile(w.chain)
				if err := errors.Join(err, q.Put(context.Background(), waiter(), Put{Program: p}), q.Quiet(context.Background(), waiter())); err != nil {
					t.Error(err)
				}
				if n := w.signal.Load(); n != 1 {
					t.Errorf("Quiet returned with the signal at %d", n)
				}
				r.node.Release(q)
			}
		})
	}
	wg.Wait()
}
