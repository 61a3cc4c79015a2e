package main

import (
	"context"
	"errors"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// world is ranks that run one measurement after another. Between two of them
// nothing runs.
type world struct {
	*rank.World
	ctx   context.Context
	out   []*heap.Tensor // each rank's
	plans []*plan.Plan
}

// open makes a world on the host platform with queues of its own, whose rings
// have so many bytes; 0 is what they have unless a program says otherwise.
func (s *suite) open(ranks int, heapBytes, ringBytes int64) (*world, error) {
	node, err := rank.NewNode(rank.NodeConfig{RingBytes: ringBytes})
	if err != nil {
		return nil, err
	}
	w, err := rank.Open(s.ctx, rank.Config{Ranks: ranks, HeapBytes: heapBytes, Platform: "host", Node: node})
	if err != nil {
		return nil, err
	}
	return &world{World: w, ctx: s.ctx, out: make([]*heap.Tensor, ranks), plans: make([]*plan.Plan, ranks)}, nil
}

// shut closes the world with what is in it.
func (w *world) shut(err *error) {
	*err = errors.Join(*err, w.Close(context.WithoutCancel(w.ctx)))
}

// plan gives every rank a tensor of so many bytes and a plan for it.
func (w *world) plan(bytes int64, chunks func(rank int) schedule.Schedule) error {
	return w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) (err error) {
		if w.out[r.ID()], err = r.Zeros(ctx, heap.Uint8, int(bytes)); err != nil {
			return err
		}
		w.plans[r.ID()], err = plan.New(ctx, r, w.out[r.ID()], chunks(r.ID()))
		return err
	})
}

// planned opens a world with a plan. Gates and handle have room beside the
// tensor.
func (s *suite) planned(ranks int, bytes int64, chunks func(rank int) schedule.Schedule) (*world, error) {
	return s.plannedOn(0, ranks, bytes, chunks)
}

// plannedOn is planned with rings of so many bytes.
func (s *suite) plannedOn(ringBytes int64, ranks int, bytes int64, chunks func(rank int) schedule.Schedule) (*world, error) {
	n := 0
	for r := range ranks {
		n += len(chunks(r))
	}
	w, err := s.open(ranks, bytes+int64(n+ranks)*2*kernels.GateRow+1<<20, ringBytes)
	if err != nil {
		return nil, err
	}
	if err := w.plan(bytes, chunks); err != nil {
		w.shut(&err)
		return nil, err
	}
	return w, nil
}

// wornIn is planned with rings that just hold a few rounds of so many bytes of
// packets on each queue, and that have been written to their end: the first
// time around, every round also pays for new pages.
func (s *suite) wornIn(sh shape) (*world, error) {
	packets := int64(sh.chunks) * (sdma.PollBytes + sdma.LinearBytes + sdma.AtomicBytes)
	ring := int64(64 << 10)
	for ring < 4*packets {
		ring *= 2
	}
	w, err := s.plannedOn(ring, sh.ranks, sh.total(), sh.schedule)
	if err != nil {
		return nil, err
	}
	if _, err := w.rounds(int(ring/packets) + 1); err != nil {
		w.shut(&err)
		return nil, err
	}
	return w, nil
}

// timed runs body on every rank and returns the seconds from when all were
// ready to when all were done.
func (w *world) timed(body func(ctx context.Context, r *rank.Rank) error) (float64, error) {
	var began, ended time.Time
	err := w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) error {
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if r.ID() == 0 {
			began = time.Now()
		}
		if err := body(ctx, r); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if r.ID() == 0 {
			ended = time.Now()
		}
		return nil
	})
	return ended.Sub(began).Seconds(), err
}

// rounds is the seconds that a round takes, as the mean of n, each with a
// launch that marks every chunk.
func (w *world) rounds(n int) (float64, error) {
	took, err := w.timed(func(ctx context.Context, r *rank.Rank) error {
		p := w.plans[r.ID()]
		for range n {
			if err := start(ctx, r, p, markAll); err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return took / float64(n), err
}

// start starts a round and launches its producer.
func start(ctx context.Context, r *rank.Rank, p *plan.Plan, producer *kernels.Kernel) error {
	h, err := p.Start(ctx)
	if err != nil {
		return err
	}
	return r.Launch(producer, kernels.Grid(1), h)
}

// markAll is a kernel that marks its rank's chunks and writes nothing.
var markAll = &kernels.Kernel{Name: "mark_all", Go: func(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	for c := range v.Own() {
		v.MarkReady(v.First() + c)
	}
}}

// howMany is how many times something that takes each seconds is done in a
// turn of about so many seconds.
func howMany(each, turn float64) int { return max(1, int(turn/each)) }
