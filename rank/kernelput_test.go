package rank_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// put is a kernel that fills a region, puts it to a peer, and waits until it is
// there:
//
//	put(handle or 0, peer, src, dst, width, height, src pitch, dst pitch, signal, seed, quiet)
var put = &kernels.Kernel{Name: "put", Go: func(t *hip.Thread) {
	v := kernels.PutView(t)
	if handle := t.Arg(0); handle != 0 {
		v = kernels.NewView(t, handle)
	}
	c := kernels.Copy{
		Src: t.Arg(2), Dst: t.Arg(3), Width: int64(t.Arg(4)), Height: int64(t.Arg(5)),
		SrcPitch: int64(t.Arg(6)), DstPitch: int64(t.Arg(7)), Signal: t.Arg(8),
	}
	if seed := t.Arg(9); seed != 0 {
		for row := int64(t.Index); row < c.Height; row += int64(t.Threads) {
			kernels.FillPattern(t.Bytes(c.Src+uint64(row*c.SrcPitch), c.Width), seed, uint64(row*c.Width))
		}
	}
	v.Put(int(int64(t.Arg(1))), c)
	if t.Arg(10) != 0 {
		v.Quiet(int(int64(t.Arg(1))))
	}
}}

// launchPut launches put for two tensors of as many rows.
func launchPut(r *rank.Rank, handle any, peer int, dst, src, signal *heap.Tensor, seed uint64, quiet int) error {
	d, s := dst.Window(), src.Window()
	return r.Launch(put, hip.Grid{Blocks: 1, Threads: 3}, handle, peer, src, dst, s.Cols, s.Rows, s.Pitch, d.Pitch, signal, seed, quiet)
}

// holds says that a tensor has a seed's pattern, row after row.
func holds(x *heap.Tensor, seed uint64) error {
	b := make([]byte, x.Size())
	if err := x.Read(b); err != nil {
		return err
	}
	if wrong := kernels.CheckPattern(b, seed, 0); wrong > 0 {
		return fmt.Errorf("%d of %d bytes are wrong", wrong, len(b))
	}
	return nil
}

func node(t *testing.T, cfg rank.NodeConfig) rank.Config {
	t.Helper()
	if cfg.RingBytes == 0 {
		cfg.RingBytes = 4096
	}
	n, err := rank.NewNode(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rank.Config{Ranks: 2, HeapBytes: 1 << 20, Platform: "host", Node: n}
}

// In every state of a plan, a kernel's copies go and the host's are as they
// are.
func TestCopiesThatKernelsStartAreUnaffectedByPlans(t *testing.T) {
	t.Parallel()
	err := rank.Run(context.Background(), node(t, rank.NodeConfig{}), func(ctx context.Context, r *rank.Rank) error {
		other, sent := 1-r.ID(), uint64(0)
		out, err := r.Zeros(ctx, heap.Uint8, 2*4, 64)
		if err != nil {
			return err
		}
		flat, err := r.Zeros(ctx, heap.Uint8, 2, 5, 40)
		if err != nil {
			return err
		}
		wide, err := r.Zeros(ctx, heap.Uint8, 10, 96)
		if err != nil {
			return err
		}
		signal, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		// puts has a kernel put a linear and a windowed copy to the peer, which
		// checks both.
		puts := func(handle any) error {
			for i, c := range []struct{ dst, src *heap.Tensor }{
				{flat.Rows(1, 2), flat.Rows(0, 1)},
				{wide.Rows(5, 10).Cols(13, 61), wide.Rows(0, 5).Cols(48, 96)},
			} {
				sent++
				seed := func(of int) uint64 { return kernels.SeedOf(uint64(10+i), of, sent) }
				if err := launchPut(r, handle, other, c.dst, c.src, signal, seed(r.ID()), i); err != nil {
					return err
				}
				if err := errors.Join(r.Await(ctx, signal, 0, sent), holds(c.dst, seed(other)), r.Sync(ctx), r.Barrier(ctx)); err != nil {
					return err
				}
			}
			return nil
		}
		hostPut := func(refused bool) error {
			for _, err := range []error{r.Put(ctx, other, flat.Rows(1, 2), flat.Rows(0, 1), rank.PutOptions{}), r.Quiet(ctx, other)} {
				var excluded *copyengine.ExclusionError
				if refused != errors.As(err, &excluded) {
					return fmt.Errorf("refused must be %v: %v", refused, err)
				}
			}
			return nil
		}
		chunks, err := schedule.Whole(out.Rows(4*r.ID(), 4*r.ID()+4).Window(), 1, schedule.Options{})
		if err != nil {
			return err
		}
		if err := puts(0); err != nil {
			return err
		}
		p, err := plan.New(ctx, r, out, chunks)
		if err != nil {
			return err
		}
		for round := uint64(1); round <= 3; round++ {
			if err := errors.Join(hostPut(true), puts(0)); err != nil {
				return err
			}
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(puts(h), hostPut(true)); err != nil {
				return err
			}
			w := out.Rows(4*r.ID(), 4*r.ID()+4).Window()
			if err := r.Launch(kernels.Fill, kernels.Grid(1), h, out, w.Offset, w.Cols, w.Rows, w.Pitch, 5, p.FirstChunk()); err != nil {
				return err
			}
			if err := errors.Join(p.Wait(ctx), puts(h)); err != nil {
				return err
			}
			b := make([]byte, 4*64)
			if err := out.Rows(4*other, 4*other+4).Read(b); err != nil {
				return err
			}
			if wrong := kernels.CheckPattern(b, kernels.SeedOf(5, other, round), uint64(len(b)*other)); wrong > 0 {
				return fmt.Errorf("round %d: %d bytes of the plan are wrong", round, wrong)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
		return errors.Join(p.Close(ctx), puts(0))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A kernel's wrong copy is its own rank's error: the queue, which other worlds
// use too, goes on.
func TestAWrongCopyOfAKernelIsItsRanksErrorAndNobodyElses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := node(t, rank.NodeConfig{})
	good, err := rank.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	round := uint64(0)
	works := func() error {
		round++
		return good.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			x, err := r.Zeros(ctx, heap.Uint8, 2, 100)
			if err != nil {
				return err
			}
			signal, err := r.Zeros(ctx, heap.Uint64, 1)
			if err != nil {
				return err
			}
			err = launchPut(r, 0, 1-r.ID(), x.Rows(1, 2), x.Rows(0, 1), signal, kernels.SeedOf(1, r.ID(), round), 1)
			return errors.Join(err, r.Sync(ctx), r.Await(ctx, signal, 0, 1), holds(x.Rows(1, 2), kernels.SeedOf(1, 1-r.ID(), round)))
		})
	}
	if err := works(); err != nil {
		t.Fatal(err)
	}
	const heapEnd = 1 << 20
	for name, c := range map[string]struct {
		peer                 int
		src, dst             uint64 // from the heap's start
		width, height, pitch int
		signal               uint64
	}{
		"to itself":                    {0, 0, 0, 8, 1, 8, 0},
		"to nobody":                    {2, 0, 0, 8, 1, 8, 0},
		"to a negative rank":           {-1, 0, 0, 8, 1, 8, 0},
		"of nothing":                   {1, 0, 0, 0, 1, 8, 0},
		"of a negative number of rows": {1, 0, 0, 8, -1, 8, 0},
		"from past the heap":           {1, heapEnd - 7, 0, 8, 1, 8, 0},
		"from before the heap":         {1, ^uint64(0), 0, 8, 1, 8, 0},
		"to past the heap":             {1, 0, heapEnd, 8, 1, 8, 0},
		"rows that leave the heap":     {1, 0, heapEnd - 100, 8, 8, 15, 0},
		"rows without end":             {1, 0, 0, 8, 1 << 62, 1 << 62, 0},
		"rows that overlap":            {1, 0, 0, 8, 2, 7, 0},
		"a signal past the heap":       {1, 0, 0, 8, 1, 8, heapEnd},
		"a signal that is no word":     {1, 0, 0, 8, 1, 8, 4},
	} {
		t.Run(name, func(t *testing.T) {
			err := rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
				if r.ID() == 1 {
					return nil
				}
				base := r.Memory().Addr()
				signal := c.signal
				if signal != 0 {
					signal += base
				}
				err := r.Launch(put, hip.Grid{Blocks: 1, Threads: 3}, 0, c.peer, base+c.src, base+c.dst, c.width, c.height, c.pitch, c.pitch, signal, 0, 1)
				return errors.Join(err, r.Sync(ctx))
			})
			var kernel *hip.KernelError
			var wrong *rank.PutError
			if !errors.As(err, &kernel) || !errors.As(err, &wrong) || wrong.Rank != 0 || wrong.Peer != c.peer {
				t.Errorf("got %v, want the kernel's *rank.PutError", err)
			}
			if err := works(); err != nil {
				t.Errorf("the other world's kernels: %v", err)
			}
		})
	}
	if err := good.Close(ctx); err != nil {
		t.Error(err)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Errorf("%d queues are left", len(qs))
	}
}

func TestAKernelWithoutItsRankStartsNoCopies(t *testing.T) {
	t.Parallel()
	p, err := hip.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func(v kernels.View){
		"Put":   func(v kernels.View) { v.Put(1, kernels.Copy{}) },
		"Quiet": func(v kernels.View) { v.Quiet(1) },
	} {
		d, err := p.Device(0)
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		err = s.Launch(hip.Launch{Func: &hip.Function{Name: name, Go: func(t *hip.Thread) { op(kernels.PutView(t)) }}, Grid: kernels.Grid(1)})
		if err := errors.Join(err, s.Sync(ctx)); !errors.Is(err, kernels.ErrNoCopier) {
			t.Errorf("%s: got %v, want ErrNoCopier", name, err)
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// slowCopies is a node whose engines take a second for a copy, of a bubble's
// time.
func slowCopies(t *testing.T) rank.Config {
	return node(t, rank.NodeConfig{Intercept: func(_, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if p.Op == sdma.OpCopyLinear {
			time.Sleep(time.Second)
		}
		return nil
	}})
}

// A kernel that ends without Quiet has copies under way that use its tensors.
func TestFreeWaitsForWhatKernelsHavePut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := rank.Run(context.Background(), slowCopies(t), func(ctx context.Context, r *rank.Rank) error {
			x, err := r.Zeros(ctx, heap.Uint8, 2, 100)
			if err != nil {
				return err
			}
			signal, err := r.Zeros(ctx, heap.Uint64, 1)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				if err := errors.Join(launchPut(r, 0, 1, x.Rows(1, 2), x.Rows(0, 1), signal, 3, 0), r.Sync(ctx)); err != nil {
					return err
				}
			}
			if n, err := r.Load(signal, 0); err != nil || n != 0 {
				return errors.Join(err, errors.New("the copy is there already, which tests nothing"))
			}
			began := time.Now()
			if err := r.Free(ctx, x); err != nil {
				return err
			}
			if time.Since(began) < time.Second {
				return fmt.Errorf("Free returned after %v, before the copy", time.Since(began))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestClosingAWorldWaitsForWhatKernelsHavePut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		cfg := slowCopies(t)
		puts := func(ctx context.Context, r *rank.Rank) error {
			x, err := r.Zeros(ctx, heap.Uint8, 2, 100)
			if err != nil {
				return err
			}
			signal, err := r.Zeros(ctx, heap.Uint64, 1)
			if err != nil {
				return err
			}
			return errors.Join(launchPut(r, 0, 1-r.ID(), x.Rows(1, 2), x.Rows(0, 1), signal, 3, 0), r.Sync(ctx))
		}
		other, err := rank.Open(ctx, cfg) // keeps the queues
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Run(ctx, puts); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := rank.Run(ctx, cfg, puts); err != nil {
			t.Error(err)
		}
		if time.Since(began) < time.Second {
			t.Errorf("the world was closed after %v, before its copies", time.Since(began))
		}
		for _, q := range cfg.Node.Queues() {
			if f := q.Fault(); f != nil {
				t.Errorf("a copy met freed memory: %v", f)
			}
		}
		if err := other.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A copy that is lost fails the kernel that asks for it.
func TestAKernelsQuietTellsOfALostCopy(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var armed atomic.Bool
	armed.Store(true)
	cfg := node(t, rank.NodeConfig{Intercept: func(_, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if p.Op == sdma.OpCopyLinear && armed.Swap(false) {
			return boom
		}
		return nil
	}})
	puts := func(ctx context.Context, r *rank.Rank) error {
		x, err := r.Zeros(ctx, heap.Uint8, 2, 100)
		if err != nil || r.ID() == 1 {
			return err
		}
		return errors.Join(launchPut(r, 0, 1, x.Rows(1, 2), x.Rows(0, 1), x, 3, 1), r.Sync(ctx))
	}
	var fault *copyengine.FaultError
	if err := rank.Run(context.Background(), cfg, puts); !errors.As(err, &fault) || !errors.Is(err, boom) {
		t.Errorf("got %v, want the queue's fault", err)
	}
	if err := rank.Run(context.Background(), cfg, puts); err != nil {
		t.Errorf("the next world: %v", err)
	}
}
