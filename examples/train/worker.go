package main

import (
	"context"
	"hash/fnv"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// worker is one rank's part of a training. Ranks own blocks of parameters: a
// rank updates its own, and gets the others'.
type worker struct {
	*training
	*rank.Rank
	step                 int
	firstBlock, endBlock int
	samples              []sample  // of the batch, this rank's
	losses               []float64 // of each program's samples

	params []float32 // all ranks', rows × width
	m, v   []float32 // moments, of which the rank keeps its own
	grads  []float32 // each rank's gradRows × width, one after the other
	mine   []float32 // the part of grads that this rank writes

	paramsPlan, gradsPlan *plan.Plan
	second                *rank.Stream // for what runs beside the optimizer
}

// newWorker is collective: it allocates tensors and makes the plans.
func newWorker(ctx context.Context, t *training, r *rank.Rank) (*worker, error) {
	w := &worker{training: t, Rank: r, losses: make([]float64, t.programs), m: make([]float32, weight), v: make([]float32, weight)}
	w.firstBlock, w.endBlock = share(blocks, r.ID(), r.Size())
	lo, hi := share(batch, r.ID(), r.Size())
	w.samples = make([]sample, hi-lo)
	if t.from != nil {
		copy(w.m, t.from.M)
		copy(w.v, t.from.V)
	}
	params, err := r.Zeros(ctx, heap.Float32, rows, width)
	if err != nil {
		return nil, err
	}
	grads, err := r.Zeros(ctx, heap.Float32, r.Size()*gradRows, width)
	if err != nil {
		return nil, err
	}
	if w.params, err = heap.Slice[float32](params); err != nil {
		return nil, err
	}
	if w.grads, err = heap.Slice[float32](grads); err != nil {
		return nil, err
	}
	w.mine = w.grads[r.ID()*gradRows*width:][:gradRows*width]
	if w.second, err = r.NewStream(); err != nil {
		return nil, err
	}
	var own schedule.Schedule // stays empty on a rank that owns no block
	if w.endBlock > w.firstBlock {
		own, err = schedule.Chunks(params.Rows(w.firstBlock*blockRows, w.endBlock*blockRows).Window(), blockRows, schedule.Options{})
		if err != nil {
			return nil, err
		}
	}
	if w.paramsPlan, err = plan.New(ctx, r, params, own); err != nil {
		return nil, err
	}
	all, err := schedule.Chunks(grads.Rows(r.ID()*gradRows, (r.ID()+1)*gradRows).Window(), blockRows, schedule.Options{Order: gradOrder})
	if err != nil {
		return nil, err
	}
	w.gradsPlan, err = plan.New(ctx, r, grads, all)
	return w, err
}

// train makes one step: new parameters from the gradients of the step before,
// and the gradients that they give. It returns the loss over the whole batch.
func (w *worker) train(ctx context.Context, step int) (float64, error) {
	w.step = step
	lo, _ := share(batch, w.ID(), w.Size())
	for i := range w.samples {
		w.samples[i].at = draw(w.seed, step, lo+i)
	}
	again := step > w.first() // the plans have had a round
	if again {
		if err := w.paramsPlan.NextRound(ctx); err != nil {
			return 0, err
		}
	}
	h, err := w.paramsPlan.Start(ctx)
	if err != nil {
		return 0, err
	}
	grid := kernels.Grid(w.programs)
	if err := w.Launch(&kernels.Kernel{Name: "update", Go: w.update}, grid, h); err != nil {
		return 0, err
	}
	if err := w.second.Launch(&kernels.Kernel{Name: "forward", Go: w.forward}, kernels.Waits(grid), h); err != nil {
		return 0, err
	}
	if again { // waits for the optimizer, which reads the gradients
		if err := w.gradsPlan.NextRound(ctx); err != nil {
			return 0, err
		}
	}
	if h, err = w.gradsPlan.Start(ctx); err != nil {
		return 0, err
	}
	for _, k := range []*kernels.Kernel{
		{Name: "outGradient", Go: w.outGradient}, {Name: "backHidden", Go: w.backHidden}, {Name: "inGradient", Go: w.inGradient},
	} {
		if err := w.second.Launch(k, grid, h); err != nil {
			return 0, err
		}
	}
	if err := w.paramsPlan.Wait(ctx); err != nil {
		return 0, err
	}
	if err := w.gradsPlan.Wait(ctx); err != nil {
		return 0, err
	}
	return w.gradient(blockLoss * blockRows * width), nil
}

// checksum tells whether ranks have the same parameters.
func (w *worker) checksum() uint64 {
	sum := fnv.New64a()
	var word [4]byte
	for _, p := range w.params {
		putFloat(word[:], p)
		sum.Write(word[:])
	}
	return sum.Sum64()
}

func (w *worker) close(ctx context.Context) error {
	if err := w.gradsPlan.Close(ctx); err != nil {
		return err
	}
	return w.paramsPlan.Close(ctx)
}
