package rank

import (
	"context"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// word is element i of a tensor of 64-bit words on this rank.
func (r *Rank) word(t *heap.Tensor, i int) (*hip.Word, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	if t.DType().Size() != 8 || !t.Contiguous() || i < 0 || i >= t.Len() {
		return nil, fmt.Errorf("rank: element %d of a tensor %v%v is no word to store or wait on; it is one of a gapless tensor of 64-bit words", i, t.DType(), t.Shape())
	}
	t = t.At(r.id)
	return t.Memory().Word(t.Block().Offset() + t.Offset() + 8*int64(i)), nil
}

// Store writes element i of a tensor of 64-bit words on this rank, after all
// that the caller wrote before, and wakes who waits for it.
func (r *Rank) Store(t *heap.Tensor, i int, v uint64) error {
	w, err := r.word(t, i)
	if err == nil {
		w.Store(v)
	}
	return err
}

// Load reads element i of a tensor of 64-bit words on this rank.
func (r *Rank) Load(t *heap.Tensor, i int) (uint64, error) {
	w, err := r.word(t, i)
	if err != nil {
		return 0, err
	}
	return w.Load(), nil
}

// Await waits under ctx until element i of a tensor of 64-bit words on this
// rank is at least v: a signal that a peer's Put adds to, for example.
func (r *Rank) Await(ctx context.Context, t *heap.Tensor, i int, v uint64) error {
	w, err := r.word(t, i)
	if err != nil {
		return err
	}
	if err := r.waiter.Await(ctx, w, func(have uint64) bool { return have >= v }, nil); err != nil {
		return fmt.Errorf("rank: waiting on rank %d for a word to be %d; it is %d: %w", r.id, v, w.Load(), err)
	}
	return nil
}
