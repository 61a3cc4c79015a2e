package rank

import (
	"context"
	"fmt"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// word is where element i of a tensor of 64-bit words lies in this rank's
// memory.
func (r *Rank) word(op string, t *heap.Tensor, i int) (int64, error) {
	if err := r.Check(t); err != nil {
		return 0, &TensorError{Op: op, Rank: r.id, Err: err}
	}
	if t.DType().Size() != 8 || !t.Contiguous() || i < 0 || i >= t.Len() {
		return 0, &TensorError{Op: op, Rank: r.id, Err: fmt.Errorf("element %d of %v%v is no word; it is one of a gapless tensor of 64-bit words", i, t.DType(), t.Shape())}
	}
	return t.Block().Offset() + t.Offset() + 8*int64(i), nil
}

// Store writes element i of a tensor of 64-bit words on this rank, after all
// that the caller wrote before, and wakes who waits for it. Here and in Load
// and Await the error is a *TensorError if there is no such word.
func (r *Rank) Store(t *heap.Tensor, i int, v uint64) error {
	at, err := r.word("Store", t, i)
	if err != nil {
		return err
	}
	return r.Memory().StoreWord(at, v)
}

// Load reads element i of a tensor of 64-bit words on this rank.
func (r *Rank) Load(t *heap.Tensor, i int) (uint64, error) {
	at, err := r.word("Load", t, i)
	if err != nil {
		return 0, err
	}
	return r.Memory().LoadWord(at)
}

// Await waits under ctx until element i of a tensor of 64-bit words on this
// rank is at least v: a signal that a peer's Put adds to, for example.
func (r *Rank) Await(ctx context.Context, t *heap.Tensor, i int, v uint64) error {
	at, err := r.word("Await", t, i)
	if err != nil {
		return err
	}
	have, err := r.Memory().AwaitWord(ctx, hip.NewWaiter(), at, func(have uint64) bool { return have >= v })
	if err != nil {
		return fmt.Errorf("rank: waiting on rank %d for a word to be %d; it is %d: %w", r.id, v, have, err)
	}
	return nil
}
