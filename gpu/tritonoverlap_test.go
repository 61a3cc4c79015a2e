//go:build cgo && linux

package gpu

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/kernels/python"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// The product of the overlap figures, whose copies take about as long as it
// does on an H200, and the programs that share it.
const (
	productRows, productCols, productDepth = 8192, 8192, 16384
	productPrograms                        = 132
)

// tritonProduct is Triton's kernel on a device, with what is common to a plan
// and a chain by hand.
func tritonProduct(t testing.TB, dev hip.Device) *kernels.TritonKernel {
	t.Helper()
	all, err := kernels.LoadTritonFS(dev, python.Built())
	if dir := os.Getenv("SLUICE_TRITON"); dir != "" { // kernels to measure instead
		all, err = kernels.LoadTriton(dev, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	k, err := all.Kernel("gemm")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// productChunks are the product's chunks in a window: one for every step that
// the programs make together.
func productChunks(k *kernels.TritonKernel, w schedule.Window) (schedule.Schedule, error) {
	tile := schedule.Tile{Rows: k.Constants()["BLOCK_M"], Cols: k.Constants()["BLOCK_N"]}
	return schedule.TileChunks(w, tile, productPrograms, schedule.Options{Order: func(step int) int {
		return k.Order().Tile(step, productRows/tile.Rows, productCols/tile.Cols)
	}})
}

// factor is elements of a matrix between -2 and 2, in pieces that repeat.
func factor(elements int) []byte {
	piece := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, uint64(elements)))
	for i := 0; i < len(piece); i += 2 {
		piece[i], piece[i+1] = byte(r.Uint32()), 0x3f|byte(r.Uint32()&0x80) // exponents of 2^-1 and 2^0
	}
	return bytes.Repeat(piece, elements*2/len(piece)+1)[:elements*2]
}

// productByHand is the product on a device, and a chain made by hand.
type productByHand struct {
	*lane
	k             *kernels.TritonKernel
	a, b, scratch *hip.Memory
	moves         [][]move
	writers       []int
	handleAt      int64 // behind the gates
}

func newProductByHand(t *testing.T) *productByHand {
	const size = productRows * productCols * 2
	p := &productByHand{lane: newLane(t, size, 256)}
	p.k = tritonProduct(t, p.dev)
	p.handleAt = p.src.Size() - 32<<20
	chunks, err := productChunks(p.k, schedule.Window{Rows: productRows, Cols: productCols, Elem: 2, Pitch: productCols * 2})
	p.check(err)
	for _, c := range chunks {
		var moves []move
		for _, r := range c.Regions {
			moves = append(moves, move{r.Offset, r.Width, r.Height, r.Pitch})
		}
		p.moves, p.writers = append(p.moves, moves), append(p.writers, c.Writers)
	}
	memory := func(content []byte, bytes int64) *hip.Memory {
		m, err := p.dev.Alloc(max(bytes, int64(len(content)), 1))
		p.check(err)
		t.Cleanup(func() { m.Free() })
		if content != nil {
			p.check(m.WriteAt(content, 0))
		}
		return m
	}
	p.a, p.b = memory(factor(productRows*productDepth), 0), memory(factor(productDepth*productCols), 0)
	p.scratch = memory(nil, p.k.ScratchBytes(productPrograms))
	return p
}

// run makes a round: with the product, the copies, or both.
func (p *productByHand) run(compute, copies bool) time.Duration {
	l := p.lane
	l.round++
	h := handle(l, l.round, p.handleAt, p.writers)
	_, hand := l.chains(p.moves)
	if copies {
		l.round--
		l.submit(nil, hand)
	}
	args := []hip.Arg{h, hip.U64(l.src.Addr()), hip.U64(p.a.Addr()), hip.U64(p.b.Addr()),
		hip.U32(productRows), hip.U32(productCols), hip.U32(productDepth), hip.U32(productPrograms),
		hip.U64(p.scratch.Addr()), hip.U64(0)}
	grid := hip.Grid{Blocks: productPrograms, Threads: p.k.Threads()}
	last := len(p.moves) - 1
	start := time.Now()
	if compute {
		l.check(l.stream.Launch(hip.Launch{Func: p.k.Loaded, Grid: grid, Args: args}))
	} else {
		l.open(len(p.moves))
	}
	for copies && l.arrived(last).Load() < l.round {
	}
	for compute && !l.stream.Idle() {
	}
	d := time.Since(start)
	if copies {
		l.drain(len(p.moves))
	}
	if copies && compute {
		here := make([]byte, l.bytes)
		l.check(l.src.ReadAt(here, 0))
		if !bytes.Equal(here, l.dst.Bytes(0, l.bytes)) {
			l.tb.Fatal("by hand: the product arrived with wrong bytes")
		}
	}
	return d
}

// Triton's product and its copies to a host-placed rank, through a plan and
// through a chain by hand with the same chunks.
func TestFigureOverlapOfTritonsProduct(t *testing.T) {
	figuresOn(t)
	const reps = 9
	p := newProductByHand(t)
	many := func(f func() time.Duration) time.Duration {
		f()
		var ds []time.Duration
		for range reps {
			ds = append(ds, f())
		}
		return median(ds)
	}
	copies := many(func() time.Duration { return p.run(false, true) })
	compute := many(func() time.Duration { return p.run(true, false) })
	hand := many(func() time.Duration { return p.run(true, true) })
	ours := productThroughAPlan(t, reps)
	serial := compute + copies
	ideal := serial - max(compute, copies)
	saved := func(d time.Duration) float64 { return float64(serial-d) / float64(ideal) }
	t.Logf("%d x %d x %d in %d chunks: product %v, copies %v, one after the other %v; triggered by a plan %v (%.3f of the ideal saving), by hand %v (%.3f): %.3f",
		productRows, productCols, productDepth, len(p.moves), compute, copies, serial, ours, saved(ours), hand, saved(hand), saved(ours)/saved(hand))
	if saved(ours) < 0.97*saved(hand) {
		t.Errorf("the plan realises less than 0.97 of what the chain by hand does")
	}
}

// productThroughAPlan is the median time from the launch to the end of Wait.
func productThroughAPlan(t *testing.T, reps int) time.Duration {
	const size = productRows * productCols * 2
	cfg := config(t, 2)
	cfg.HeapBytes = size + productDepth*(productRows+productCols)*2 + 64<<20
	var took []time.Duration
	var products [2][]byte // by rank
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		k := tritonProduct(t, r.Device())
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		out, err := r.Zeros(ctx, heap.BFloat16, productRows, productCols)
		if err != nil {
			return err
		}
		a, err := r.Zeros(ctx, heap.BFloat16, productRows, productDepth)
		if err != nil {
			return err
		}
		b, err := r.Zeros(ctx, heap.BFloat16, productDepth, productCols)
		if err != nil {
			return err
		}
		scratch, err := r.Zeros(ctx, heap.Uint8, max(1, int(k.ScratchBytes(productPrograms))))
		if err != nil {
			return err
		}
		var chunks schedule.Schedule
		if r.ID() == 0 {
			if chunks, err = productChunks(k, out.Window()); err != nil {
				return err
			}
			if err := a.Write(factor(productRows * productDepth)); err != nil {
				return err
			}
			if err := b.Write(factor(productDepth * productCols)); err != nil {
				return err
			}
		}
		p, err := plan.New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		for i := range reps + 1 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				grid, args, err := k.Launch(productPrograms, scratch, h, out, a, b, productRows, productCols, productDepth, productPrograms)
				if err != nil {
					return err
				}
				start := time.Now()
				if err := r.Launch(k.Kernel, grid, args...); err != nil {
					return err
				}
				if err := p.Wait(ctx); err != nil {
					return err
				}
				if i > 0 { // the first is to warm up
					took = append(took, time.Since(start))
				}
			} else if err := p.Wait(ctx); err != nil {
				return err
			}
			if i < reps {
				if err := p.NextRound(ctx); err != nil {
					return err
				}
			}
		}
		products[r.ID()] = make([]byte, out.Size())
		if err := out.Read(products[r.ID()]); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if !bytes.Equal(products[0], products[1]) {
			t.Errorf("rank %d: the product arrived with wrong bytes", r.ID())
		}
		return p.Close(ctx)
	})
	return median(took)
}
