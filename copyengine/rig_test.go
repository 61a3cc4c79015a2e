package copyengine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
)

// patience bounds what should take no time at all.
const patience = 30 * time.Second

// rig is a node with some memory for gates, signals and data.
type rig struct {
	t    *testing.T
	node *Node
	dev  hip.Device
	mem  *hip.Memory
	next int // word
}

func newRig(t *testing.T, cfg Config) *rig {
	t.Helper()
	if cfg.RingBytes == 0 {
		cfg.RingBytes = 4096
	}
	node, err := NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p, err := hip.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := dev.Alloc(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mem.Free()
		if qs := node.Queues(); len(qs) > 0 {
			t.Errorf("%d queues are left", len(qs))
		}
	})
	return &rig{t: t, node: node, dev: dev, mem: mem}
}

func place(i int) Endpoint { return Endpoint{Platform: "host", Device: i} }

// queue acquires a queue until the test ends.
func (r *rig) queue(from, to int) *Queue {
	r.t.Helper()
	q, err := r.node.Acquire(r.soon(), r.dev, place(from), place(to))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.node.Release(q) })
	return q
}

// soon is a context that ends after the test's patience.
func (r *rig) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// ended is a context that has ended, for calls that must not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// word is a fresh word of the rig's memory, with its address.
func (r *rig) word() (*hip.Word, uint64) {
	off := int64(r.next) * 64
	r.next++
	return r.mem.Word(off), r.mem.Addr() + uint64(off)
}

// work is something to prepare or to put: a step with a gate and a signal.
type work struct {
	gate, signal *hip.Word
	chain        Chain
}

// gated is work that waits for its gate to reach 1.
func (r *rig) gated() work {
	var w work
	var gate, signal uint64
	w.gate, gate = r.word()
	w.signal, signal = r.word()
	w.chain = Chain{{Gate: gate, Signal: signal}}
	return w
}

// open is work that goes at once.
func (r *rig) open() work {
	var w work
	var signal uint64
	w.signal, signal = r.word()
	w.chain = Chain{{Signal: signal}}
	return w
}

// broken is work that faults its queue once its gate is open.
func (r *rig) broken() work {
	w := r.gated()
	w.chain[0].Signal = 8 // where nothing is ever allocated
	return w
}

func (r *rig) compile(q *Queue, w work) Program {
	r.t.Helper()
	p, err := q.Compile(w.chain)
	if err != nil {
		r.t.Fatal(err)
	}
	p.SetRound(1)
	return p
}

// prepare prepares work for an owner on queues, one piece for each.
func (r *rig) prepare(o *Owner, queues []*Queue, works ...work) (int, error) {
	r.t.Helper()
	var items []Item
	for i, q := range queues {
		items = append(items, Item{Queue: q, Program: r.compile(q, works[i]), Owner: o})
	}
	SortItems(items)
	return Prepare(items, 1)
}

// mustPrepare is prepare on one queue, which succeeds.
func (r *rig) mustPrepare(o *Owner, q *Queue, w work) {
	r.t.Helper()
	if _, err := r.prepare(o, []*Queue{q}, w); err != nil {
		r.t.Fatal(err)
	}
}

// carried waits until the work has been executed.
func (r *rig) carried(w work) {
	r.t.Helper()
	if err := hip.NewWaiter().Await(r.soon(), w.signal, func(v uint64) bool { return v == 1 }, nil); err != nil {
		r.t.Fatalf("the signal is %d: %v", w.signal.Load(), err)
	}
}

// faulted waits until the queue has stopped.
func (r *rig) faulted(q *Queue, o *Owner) {
	r.t.Helper()
	if _, bad := expect[*FaultError](q.Drain(r.soon(), hip.NewWaiter(), o)); bad != nil {
		r.t.Fatal(bad)
	}
}

// expect says that an error is of type E.
func expect[E error](err error) (E, error) {
	var e E
	if !errors.As(err, &e) {
		return e, fmt.Errorf("got %v, want a %T", err, e)
	}
	return e, nil
}

// must fails the test with an error.
func (r *rig) must(errs ...error) {
	r.t.Helper()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatal(err)
	}
}
