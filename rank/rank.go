package rank

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// Rank is one of a world's N equal parts. Its collective calls are made by one
// goroutine at a time, normally the one that runs the rank's body; the others
// may be made by any.
type Rank struct {
	id       int
	world    *World
	device   hip.Device
	endpoint copyengine.Endpoint
	place    Placement
	builtin  map[string]*hip.Function // nil where kernels are Go functions
	stream   *Stream
	queues   []*copyengine.Queue // to each peer; nil to itself

	copier  copier
	lost    [MaxRanks]loss // of what was put to each peer
	barrier Call
	ended   error // of the last body

	mu      sync.Mutex
	streams []*Stream
}

// ID is the rank's number, 0 ≤ ID < Size.
func (r *Rank) ID() int { return r.id }

// Size is the number of ranks in the world.
func (r *Rank) Size() int { return len(r.world.ranks) }

// World is the world that the rank is part of.
func (r *Rank) World() *World { return r.world }

// Device is where the rank lives.
func (r *Rank) Device() hip.Device { return r.device }

// Memory is the rank's part of the symmetric heap.
func (r *Rank) Memory() *hip.Memory { return r.world.heap.Memory(r.id) }

// Queue is the host queue to a peer; there is none to the rank itself.
func (r *Rank) Queue(peer int) *copyengine.Queue { return r.queues[peer] }

// Meet brings a call to the rendezvous and returns everybody's verdict. It is
// what collectives are made of.
func (r *Rank) Meet(ctx context.Context, call *Call) error {
	return r.world.meeting.meet(ctx, r.id, call)
}

// EnterClose brings the rank to a closing and waits for the other ranks under
// ctx.
func (r *Rank) EnterClose(ctx context.Context, c *Closing) error {
	return r.world.meeting.enter(ctx, r.id, c)
}

// Barrier returns once every rank has called it.
func (r *Rank) Barrier(ctx context.Context) error {
	r.barrier.Op = "Barrier"
	return r.Meet(ctx, &r.barrier)
}

// allocation is what a rank brings to Zeros.
type allocation struct {
	dtype heap.DType
	shape []int
	bytes int64
	block *heap.Block // the verdict
}

// Zeros allocates a tensor of zeros, at the same offset on every rank.
// Collective: every rank asks for the same type and shape. It fails on every
// rank, with a *heap.ExhaustedError as cause when there is no room.
func (r *Rank) Zeros(ctx context.Context, dt heap.DType, shape ...int) (*heap.Tensor, error) {
	mine := &allocation{dtype: dt, shape: shape}
	var err error
	mine.bytes, err = heap.TensorBytes(dt, shape...)
	err = r.Meet(ctx, &Call{Op: "Zeros", Err: err, Value: mine, Decide: r.world.allocate})
	if err != nil {
		return nil, err
	}
	err = mine.block.Zero(r.id)
	// A peer may put into the tensor as soon as its Zeros returns.
	if err := r.Meet(ctx, &Call{Op: "Zeros", Err: err}); err != nil {
		mine.block.Free()
		return nil, err
	}
	return heap.NewTensor(r.world.heap, mine.block, r.id, dt, shape...)
}

// allocate is the Decide of Zeros.
func (w *World) allocate(calls []*Call) error {
	first := calls[0].Value.(*allocation)
	for i, c := range calls[1:] {
		if a := c.Value.(*allocation); a.dtype != first.dtype || fmt.Sprint(a.shape) != fmt.Sprint(first.shape) {
			return &ShapeError{Rank: 0, Shape: describe(first), OtherRank: i + 1, OtherShape: describe(a)}
		}
	}
	block, err := w.heap.Alloc(first.bytes)
	if err != nil {
		return err
	}
	for _, c := range calls {
		c.Value.(*allocation).block = block
	}
	return nil
}

func describe(a *allocation) string { return fmt.Sprintf("%v%v", a.dtype, a.shape) }

// Free gives a tensor's allocation back to the heap, once nothing that is
// going on can touch it. Collective: every rank frees the same tensor. It
// waits for what the rank has launched, and for what its kernels have put. It
// fails on every rank, with a *TensorError as cause if a tensor is the wrong
// one.
func (r *Rank) Free(ctx context.Context, t *heap.Tensor) error {
	var block *heap.Block
	err := r.Check(t)
	if err != nil {
		err = &TensorError{Op: "Free", Rank: r.id, Err: err}
	} else {
		block = t.Block()
		if err = r.Sync(ctx); err == nil {
			err = r.copier.quiet(ctx)
		}
	}
	return r.Meet(ctx, &Call{Op: "Free", Err: err, Value: block, Decide: freeOne})
}

// freeOne is the Decide of Free.
func freeOne(calls []*Call) error {
	for i, c := range calls {
		if c.Value != calls[0].Value {
			return &TensorError{Op: "Free", Rank: i, Err: errors.New("it is not the one that rank 0 frees; every rank frees the same one")}
		}
	}
	return calls[0].Value.(*heap.Block).Free()
}

// Check says why the rank cannot use a tensor, if it cannot: ErrNoTensor,
// ErrForeign, or the tensor's own error.
func (r *Rank) Check(t *heap.Tensor) error {
	switch {
	case t == nil:
		return ErrNoTensor
	case t.Err() != nil:
		return t.Err()
	case t.At(r.id).Memory() != r.Memory():
		return ErrForeign
	}
	return nil
}

// ShapeError says that ranks asked for different tensors.
type ShapeError struct {
	Rank       int
	Shape      string
	OtherRank  int
	OtherShape string
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("rank: Zeros: rank %d asks for %s, rank %d for %s; every rank must ask for the same tensor", e.Rank, e.Shape, e.OtherRank, e.OtherShape)
}
