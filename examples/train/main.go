// Command train trains a small character-level language model on a text that
// is part of the program, as a driver would: its parameters are divided among
// the ranks, the optimizer's kernel updates a rank's own and marks row blocks
// ready while the rest is still being computed, and the forward pass on every
// rank begins with the blocks that have arrived. Gradients come together
// through a second plan, the output layer's while the input layer's are still
// being computed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/timeline/picture"
)

const (
	name = "train"
	what = "train a character-level language model whose parameters are divided among the ranks"
)

func main() {
	var p program
	example.Main(name, what, p.flags, p.run)
}

// program is the flags.
type program struct {
	steps, programs  int
	seed             uint64
	compare          bool
	checkpoint, plot string
}

func (p *program) flags(fs *flag.FlagSet) {
	example.Count(fs, &p.steps, "steps", 200, 1, 1<<30, "steps to train")
	example.Count(fs, &p.programs, "programs", 4, 1, 64, "programs of each kernel")
	fs.Uint64Var(&p.seed, "seed", 1, "what the parameters and the batches are drawn with")
	fs.BoolVar(&p.compare, "compare", false, "train again on 1, 2 and 4 ranks and compare the losses")
	fs.StringVar(&p.checkpoint, "checkpoint", "", "go on from this `file` if it exists, and save to it")
	fs.StringVar(&p.plot, "plot", "", "draw the loss into this `file`, .svg or .png")
}

// comparison is how the losses of another number of ranks agree.
type comparison struct {
	Ranks      int     `json:"ranks"`
	FinalLoss  float64 `json:"final_loss"`
	Difference float64 `json:"largest_difference"` // of any step, relative
	Agrees     bool    `json:"agrees"`
}

// tolerance is how far rounding takes losses apart: sums over ranks are of
// 24-bit floats, and the steps of a training pass differences on.
const tolerance = 1e-4

// result is what -json prints.
type result struct {
	Example    string       `json:"example"`
	Platform   string       `json:"platform"`
	Ranks      int          `json:"ranks"`
	Steps      int          `json:"steps"`
	FirstStep  int          `json:"first_step"` // of this run
	Seed       uint64       `json:"seed"`
	Parameters int          `json:"parameters"`
	FirstLoss  float64      `json:"first_loss"` // of step 0
	FinalLoss  float64      `json:"final_loss"`
	SecondsPer float64      `json:"seconds_per_step"`
	Compared   []comparison `json:"compared,omitempty"`
	AllRight   bool         `json:"verified"`
}

func (r *result) Verified() bool { return r.AllRight }

func (r *result) Table() [][2]string {
	table := [][2]string{
		{"parameters", fmt.Sprint(r.Parameters)},
		{"steps", fmt.Sprintf("%d to %d", r.FirstStep, r.FirstStep+r.Steps-1)},
		{"first loss", fmt.Sprintf("%.4f nats per character", r.FirstLoss)},
		{"final loss", fmt.Sprintf("%.4f nats per character", r.FinalLoss)},
		{"time per step", time.Duration(r.SecondsPer * 1e9).Round(time.Microsecond).String()},
	}
	for _, c := range r.Compared {
		table = append(table, [2]string{"compared with " + inRanks(c.Ranks), fmt.Sprintf("largest difference %.1e, agrees: %v", c.Difference, c.Agrees)})
	}
	return append(table, [2]string{"verified", fmt.Sprint(r.AllRight)})
}

func inRanks(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}

func (p *program) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	if f.Platform == "auto" {
		f.Platform = "host" // its kernels are Go functions
	}
	if p.plot != "" {
		if err := picture.CheckFile(p.plot); err != nil {
			return nil, fmt.Errorf("-plot: %w", err)
		}
	}
	t := &training{seed: p.seed, steps: p.steps, programs: p.programs}
	if p.checkpoint != "" {
		var err error
		if t.from, err = readCheckpoint(p.checkpoint, p.seed); err != nil {
			return nil, fmt.Errorf("-checkpoint: %w", err)
		}
		t.save = func(c *checkpoint) error { return c.write(p.checkpoint) }
	}
	res := &result{Example: name, Ranks: f.Ranks, Steps: p.steps, FirstStep: t.first(), Seed: p.seed, Parameters: parameters}
	f.Say("%d parameters on %s, %d characters of text, steps %d to %d", res.Parameters, inRanks(f.Ranks), len(corpus), t.first(), t.first()+p.steps-1)
	t.report = func(step int, loss float64) {
		f.Bar("step", step-t.first()+1, p.steps, fmt.Sprintf("loss %.4f", loss))
	}
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, HeapBytes: f.HeapBytes(heapBytes(f.Ranks))}
	began := time.Now()
	losses, err := t.run(ctx, cfg, f.RunWorld)
	if mismatch := (*mismatchError)(nil); errors.As(err, &mismatch) {
		return res, err
	} else if err != nil {
		return nil, err
	}
	res.Platform = f.Platform
	res.SecondsPer = time.Since(began).Seconds() / float64(p.steps)
	res.FirstLoss, res.FinalLoss = losses[0], losses[len(losses)-1]
	if t.from != nil {
		res.FirstLoss = t.from.Losses[0]
	}
	res.AllRight = !math.IsNaN(res.FinalLoss) && (t.first()+p.steps < 20 || res.FinalLoss < res.FirstLoss)
	curves := []curve{{inRanks(f.Ranks), losses}}
	if p.compare {
		if curves, err = p.compareWith(ctx, f, t, res, curves); err != nil {
			return nil, err
		}
	}
	if p.plot != "" {
		if err := drawCurves(p.plot, t.first(), curves); err != nil {
			return res, fmt.Errorf("-plot: %w", err)
		}
		f.Say("wrote %s", p.plot)
	}
	return res, nil
}

// compareWith trains again on other numbers of ranks, from the same beginning.
func (p *program) compareWith(ctx context.Context, f *example.Flags, t *training, res *result, curves []curve) ([]curve, error) {
	for _, ranks := range slices.DeleteFunc([]int{1, 2, 4}, func(n int) bool { return n == f.Ranks }) {
		other := &training{seed: p.seed, steps: p.steps, programs: p.programs, from: t.from}
		f.Say("again on %s", inRanks(ranks))
		losses, err := other.run(ctx, rank.Config{Ranks: ranks, Platform: f.Platform, HeapBytes: heapBytes(ranks)}, rank.Run)
		if err != nil {
			return nil, fmt.Errorf("-compare on %s: %w", inRanks(ranks), err)
		}
		c := comparison{Ranks: ranks, FinalLoss: losses[len(losses)-1]}
		for i, l := range losses {
			c.Difference = max(c.Difference, math.Abs(l-t.losses[i])/l)
		}
		c.Agrees = c.Difference <= tolerance
		res.AllRight = res.AllRight && c.Agrees
		res.Compared = append(res.Compared, c)
		curves = append(curves, curve{inRanks(ranks), losses})
	}
	return curves, nil
}
