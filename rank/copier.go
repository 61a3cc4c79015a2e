package rank

import (
	"context"
	"fmt"
	"sync"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// copier carries the copies that a rank's kernels start, over queues that are
// made when a kernel first puts to a peer.
type copier struct {
	rank *Rank

	mu     sync.Mutex
	queues []*copyengine.Queue
}

var _ kernels.Copier = (*copier)(nil)

// queue is the kernel queue to a peer.
func (c *copier) queue(ctx context.Context, peer int) (*copyengine.Queue, error) {
	r := c.rank
	if peer < 0 || peer >= r.Size() || peer == r.id {
		return nil, &PutError{Rank: r.id, Peer: peer, Why: fmt.Sprintf("the peer is another rank of the world, 0 to %d", r.Size()-1)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues == nil {
		c.queues = make([]*copyengine.Queue, r.Size())
	}
	if c.queues[peer] == nil {
		q, err := r.world.node.AcquireKernel(ctx, r.device, r.endpoint, r.world.ranks[peer].endpoint)
		if err != nil {
			return nil, err
		}
		c.queues[peer] = q
	}
	return c.queues[peer], nil
}

// Put implements kernels.Copier.
func (c *copier) Put(ctx context.Context, peer int, k kernels.Copy) error {
	q, err := c.queue(ctx, peer)
	if err != nil {
		return err
	}
	// The heap is symmetric: a place on a peer is as far into its memory.
	there := c.rank.world.ranks[peer].Memory().Addr() - c.rank.Memory().Addr()
	step := copyengine.Step{Copies: []copyengine.Copy{{
		Src: k.Src, Dst: k.Dst + there, Width: k.Width, Height: k.Height, SrcPitch: k.SrcPitch, DstPitch: k.DstPitch,
	}}}
	if k.Signal != 0 {
		step.Signal = k.Signal + there
	}
	program, err := q.Compile(copyengine.Chain{step})
	if err != nil {
		return err
	}
	return q.Put(ctx, hip.NewWaiter(), copyengine.Put{World: c.rank.world.name, Program: program})
}

// Quiet implements kernels.Copier.
func (c *copier) Quiet(ctx context.Context, peer int) error {
	q, err := c.queue(ctx, peer)
	if err != nil {
		return err
	}
	return q.Quiet(ctx, hip.NewWaiter())
}

// release gives the queues back.
func (c *copier) release() {
	for _, q := range c.queues {
		if q != nil {
			c.rank.world.node.Release(q)
		}
	}
}
