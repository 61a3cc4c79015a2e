package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// copier carries the copies that a rank's kernels start, over queues that are
// made when a kernel first puts to a peer.
type copier struct {
	rank *Rank
	lost [MaxRanks]loss // of what was put to each peer

	mu     sync.Mutex
	queues []*copyengine.Queue
	closed bool
}

var _ kernels.Copier = (*copier)(nil)

// queue is the kernel queue to a peer.
func (c *copier) queue(ctx context.Context, peer int) (*copyengine.Queue, error) {
	r := c.rank
	if err := r.checkPeer(peer); err != nil && !errors.Is(err, ErrClosed) { // kernels may end their work while the world closes
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
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

// Put implements kernels.Copier. The error is a *PutError if the copy reaches
// outside the heap.
func (c *copier) Put(ctx context.Context, peer int, k kernels.Copy) error {
	q, err := c.queue(ctx, peer)
	if err != nil {
		return err
	}
	if why := c.outside(k); why != "" {
		return &PutError{Rank: c.rank.id, Peer: peer, Why: why}
	}
	// The heap is symmetric: a place on a peer is as far into its memory.
	there := c.rank.world.ranks[peer].Memory().Addr() - c.rank.Memory().Addr()
	step := copyengine.Step{Copies: []copyengine.Copy{{
		Src: k.Src, Dst: k.Dst + there, Width: k.Width, Height: k.Height, SrcPitch: k.SrcPitch, DstPitch: k.DstPitch,
	}}}
	if k.Height == 1 || k.SrcPitch == k.Width && k.DstPitch == k.Width {
		step.Copies = pieces(k.Src, k.Dst+there, k.Width*k.Height, c.rank.device.Properties().LargestCopy)
	}
	if k.Signal != 0 {
		step.Signal = k.Signal + there
	}
	program, err := q.Compile(copyengine.Chain{step})
	if err != nil {
		return err
	}
	return q.Put(ctx, hip.NewWaiter(), copyengine.Put{World: c.rank.world.name, Program: program, Done: c.lost[peer].note})
}

// outside says what of a copy is not in the rank's heap.
func (c *copier) outside(k kernels.Copy) string {
	if k.Width < 1 || k.Height < 1 {
		return fmt.Sprintf("%d rows of %d bytes are nothing to copy", k.Height, k.Width)
	}
	for _, w := range []struct {
		name  string
		addr  uint64
		pitch int64
	}{{"Src", k.Src, k.SrcPitch}, {"Dst", k.Dst, k.DstPitch}} {
		if !c.holds(w.addr, k.Width, k.Height, w.pitch) {
			return fmt.Sprintf("%s, %d rows of %d bytes, %d apart, at %#x, is not in the rank's heap", w.name, k.Height, k.Width, w.pitch, w.addr)
		}
	}
	if k.Signal != 0 && (k.Signal%8 != 0 || !c.holds(k.Signal, 8, 1, 8)) {
		return fmt.Sprintf("Signal at %#x is no word of the rank's heap", k.Signal)
	}
	return ""
}

// holds reports whether the rank's heap has all of the rows.
func (c *copier) holds(addr uint64, width, height, pitch int64) bool {
	m := c.rank.Memory()
	off := addr - m.Addr()
	if off >= uint64(m.Size()) {
		return false
	}
	room := m.Size() - int64(off)
	if width > room {
		return false
	}
	return height == 1 || pitch >= width && height-1 <= (room-width)/pitch
}

// Quiet implements kernels.Copier.
func (c *copier) Quiet(ctx context.Context, peer int) error {
	q, err := c.queue(ctx, peer)
	if err != nil {
		return err
	}
	return errors.Join(q.Quiet(ctx, hip.NewWaiter()), c.lost[peer].take())
}

// quiet waits for everything that the rank's kernels have put to anybody.
func (c *copier) quiet(ctx context.Context) error {
	c.mu.Lock()
	queues := slices.Clone(c.queues)
	c.mu.Unlock()
	for _, q := range queues {
		if q == nil {
			continue
		}
		if err := q.Quiet(ctx, hip.NewWaiter()); err != nil {
			return err
		}
	}
	return nil
}

// release gives the queues back.
func (c *copier) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, q := range c.queues {
		if q != nil {
			c.rank.world.node.Release(q)
		}
	}
}
