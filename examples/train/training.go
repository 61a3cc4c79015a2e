package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triggeredplans/sluice/rank"
)

// training is one run of so many steps, on however many ranks.
type training struct {
	seed     uint64
	steps    int
	programs int         // of each kernel
	from     *checkpoint // to go on from, or nil

	report func(step int, loss float64) // by rank 0
	save   func(*checkpoint) error      // by rank 0, now and then

	losses    []float64 // rank 0's
	checksums []uint64  // each rank's parameters
	next      checkpoint
}

// saveEvery is how many steps lie between two checkpoints.
const saveEvery = 100

// mismatchError says that ranks have different parameters.
type mismatchError struct{ step, rank int }

func (e *mismatchError) Error() string {
	return fmt.Sprintf("in step %d rank %d has other parameters than rank 0", e.step, e.rank)
}

// heapBytes is what the tensors and plans of a training take on each rank.
func heapBytes(ranks int) int64 { return int64(ranks+1)*(gradRows*width*4+gradBlocks*256) + 1<<20 }

// first is the number of the first step.
func (t *training) first() int {
	if t.from == nil {
		return 0
	}
	return t.from.Step
}

// run trains on every rank of a world that open opens, and returns the losses.
func (t *training) run(ctx context.Context, cfg rank.Config, open func(context.Context, rank.Config, func(context.Context, *rank.Rank) error) error) ([]float64, error) {
	t.checksums = make([]uint64, cfg.Ranks)
	t.next = newCheckpoint(t.seed)
	err := open(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		w, err := newWorker(ctx, t, r)
		if err != nil {
			return err
		}
		for step := t.first(); step < t.first()+t.steps; step++ {
			loss, err := w.train(ctx, step)
			if err != nil {
				return err
			}
			if err := t.keep(ctx, w, loss); err != nil {
				return err
			}
		}
		return w.close(ctx)
	})
	return t.losses, err
}

// keep checks what a step has left on the ranks, and keeps it.
func (t *training) keep(ctx context.Context, w *worker, loss float64) error {
	t.checksums[w.ID()] = w.checksum()
	done := w.step + 1
	saves := t.save != nil && (done%saveEvery == 0 || done == t.first()+t.steps)
	if saves {
		t.next.take(w)
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	if w.ID() != 0 {
		return nil
	}
	for r, sum := range t.checksums {
		if sum != t.checksums[0] {
			return &mismatchError{w.step, r}
		}
	}
	t.losses = append(t.losses, loss)
	if t.report != nil {
		t.report(w.step, loss)
	}
	if !saves {
		return nil
	}
	t.next.Step = done
	if t.from != nil {
		t.next.Losses = append(t.next.Losses[:0], t.from.Losses...)
	}
	t.next.Losses = append(t.next.Losses[:min(len(t.next.Losses), t.first())], t.losses...)
	return t.save(&t.next)
}

func putFloat(b []byte, f float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(f)) }
