package main

import (
	"math"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// The kernels of a step. Their first argument is the handle of a plan, of the
// parameters or of the gradients; what else they use is the worker's, as a
// Go kernel's data may be.

// share is the part [lo, hi) of n things that falls to one of parts.
func share(n, part, parts int) (lo, hi int) { return part * n / parts, (part + 1) * n / parts }

// update is the optimizer, the producer of parameters: its programs take the
// rank's blocks in turn, and mark each as soon as it is there.
func (w *worker) update(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	rule := newAdam(w.step)
	for b := w.firstBlock + t.Block; b < w.endBlock; b += t.Blocks {
		for i := b * blockRows * width; i < (b+1)*blockRows*width; i++ {
			switch {
			case w.step == 0:
				w.params[i] = initial(w.seed, i)
			case w.from != nil && w.step == w.from.Step:
				w.params[i] = w.from.Params[i]
				rule.update(&w.params[i], &w.m[i], &w.v[i], w.from.Gradient[i])
			default:
				rule.update(&w.params[i], &w.m[i], &w.v[i], w.gradient(i))
			}
		}
		v.MarkReady(b)
	}
}

// gradient is that of parameter i, over all ranks, in their order.
func (w *worker) gradient(i int) (g float64) {
	for at := i; at < len(w.grads); at += gradRows * width {
		g += float64(w.grads[at])
	}
	return g
}

// forward is the first consumer of parameters: its programs share the rank's
// samples, and use each block as it arrives.
func (w *worker) forward(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	lo, hi := share(len(w.samples), t.Block, t.Blocks)
	mine := w.samples[lo:hi]
	v.Wait(blockInBias)
	for i := range mine {
		copy(mine[i].h[:], row(w.params, blockInBias*blockRows))
	}
	for b := blockIn; b < blockOut; b++ {
		v.Wait(b)
		for i := range mine {
			if r, ok := mine[i].inRow(b); ok {
				add(mine[i].h[:], row(w.params, b*blockRows+r))
			}
		}
	}
	for i := range mine {
		for j, z := range mine[i].h {
			mine[i].h[j] = float32(math.Tanh(float64(z)))
		}
		clear(mine[i].d[:])
	}
	for b := blockOut; b < blockOutBias; b++ {
		v.Wait(b)
		for i := range mine {
			for r := range blockRows {
				scaled(mine[i].d[:], row(w.params, b*blockRows+r), mine[i].h[(b-blockOut)*blockRows+r])
			}
		}
	}
	v.Wait(blockOutBias)
	w.losses[t.Block] = 0
	for i := range mine {
		add(mine[i].d[:], row(w.params, blockOutBias*blockRows)[:vocab])
		w.losses[t.Block] += tell(mine[i].d[:], mine[i].next())
	}
}

// outGradient is the producer of the loss and of the output layer's gradients.
// Its programs take the steps of gradOrder in turn.
func (w *worker) outGradient(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	for step := t.Block; step < outSteps; step += t.Blocks {
		switch b := gradOrder(step); b {
		case blockLoss:
			var sum float64
			for _, l := range w.losses {
				sum += l
			}
			row(w.mine, b*blockRows)[0] = float32(sum)
		case blockOutBias:
			var sum [vocab]float64
			for i := range w.samples {
				accumulate(sum[:], w.samples[i].d[:], 1)
			}
			store(row(w.mine, b*blockRows), sum[:])
		default:
			for r := range blockRows {
				var sum [vocab]float64
				for i := range w.samples {
					accumulate(sum[:], w.samples[i].d[:], w.samples[i].h[(b-blockOut)*blockRows+r])
				}
				store(row(w.mine, b*blockRows+r), sum[:])
			}
		}
		v.MarkReady(v.First() + step)
	}
}

// backHidden takes the gradient back through the hidden layer: h becomes the
// gradient of what went into tanh. Its programs share the samples.
func (w *worker) backHidden(t *hip.Thread) {
	lo, hi := share(len(w.samples), t.Block, t.Blocks)
	for i := lo; i < hi; i++ {
		s := &w.samples[i]
		for j := range s.h {
			var sum float64
			for c, p := range row(w.params, blockOut*blockRows+j)[:vocab] {
				sum += float64(p) * float64(s.d[c])
			}
			s.h[j] = float32(sum * (1 - float64(s.h[j])*float64(s.h[j])))
		}
	}
}

// inGradient is the producer of the input layer's gradients.
func (w *worker) inGradient(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	for step := outSteps + t.Block; step < gradBlocks; step += t.Blocks {
		b := gradOrder(step)
		var sum [blockRows][width]float64
		for i := range w.samples {
			if b == blockInBias {
				accumulate(sum[0][:], w.samples[i].h[:], 1)
			} else if r, ok := w.samples[i].inRow(b); ok {
				accumulate(sum[r][:], w.samples[i].h[:], 1)
			}
		}
		for r := range sum {
			store(row(w.mine, b*blockRows+r), sum[r][:])
		}
		v.MarkReady(v.First() + step)
	}
}

// sample is one place of the text in the batch. h goes from what the hidden
// layer gets to what it gives, and back to the gradient; d from the logits to
// their gradient.
type sample struct {
	at int // the character to tell
	h  [hidden]float32
	d  [vocab]float32
}

func (s *sample) next() uint8 { return corpus[s.at] }

// inRow is the row of input block b that the sample's context picks, if it
// picks one: a block is about one character of the context.
func (s *sample) inRow(b int) (r int, ok bool) {
	first := (b - blockIn) * blockRows
	r = int(corpus[s.at-history+first/vocab]) - first%vocab
	return r, r >= 0 && r < blockRows
}

func add(to, from []float32) {
	for i := range to {
		to[i] += from[i]
	}
}

func scaled(to, from []float32, by float32) {
	for i := range to {
		to[i] += by * from[i]
	}
}

func accumulate(to []float64, from []float32, by float32) {
	for i, f := range from {
		to[i] += float64(f) * float64(by)
	}
}

func store(to []float32, from []float64) {
	for i, f := range from {
		to[i] = float32(f)
	}
}
