package rank

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

func TestAWrongConfigIsAnErrorThatNamesTheField(t *testing.T) {
	for _, c := range []struct {
		field string
		cfg   Config
	}{
		{"Ranks", Config{}},
		{"Ranks", Config{Ranks: -1}},
		{"Ranks", Config{Ranks: MaxRanks + 1}}, // too many
		{"HeapBytes", Config{Ranks: 1, HeapBytes: -1}},
		{"CloseTimeout", Config{Ranks: 1, CloseTimeout: -1}},
	} {
		_, err := Open(context.Background(), c.cfg)
		if e, bad := expect[*ConfigError](err); bad != nil || e.Field != c.field {
			t.Errorf("%+v: got %v, want an error about %s", c.cfg, err, c.field)
		}
		if err := Run(context.Background(), c.cfg, nil); err == nil {
			t.Errorf("%+v: Run worked", c.cfg)
		}
	}
	_, err := NewNode(NodeConfig{RingBytes: 5000})
	if err == nil || !strings.Contains(err.Error(), "5000") {
		t.Errorf("a ring of 5000 bytes: got %v", err)
	}
}

func TestTheMostRanksMeet(t *testing.T) {
	hostOnly(t, "room for so many ranks")
	t.Parallel()
	ranks := MaxRanks
	if raceEnabled { // 4032 queues take long
		ranks = 16
	}
	cfg := config(t, ranks, NodeConfig{})
	cfg.HeapBytes = 4096
	run(t, cfg, func(ctx context.Context, r *Rank) error {
		for range 10 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// What fails while a world opens leaves no queue, and a right world opens on
// the same node at once.
func TestAWorldThatCannotOpenLeavesNothingBehind(t *testing.T) {
	dead := errors.New("the engine is dead")
	var broken atomic.Bool
	probes := func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if broken.Load() && from.Device == 1 && to.Device == 2 && p.Op == sdma.OpFence {
			return dead
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   func(error) error
	}{
		"an engine that fails its probe": {func(*Config) { broken.Store(true) }, func(err error) error {
			p, bad := expect[*copyengine.ProbeError](err)
			if bad != nil {
				return bad
			}
			if !strings.Contains(p.Queue, "host:1→host:2") || p.Engine == "" || !errors.Is(err, dead) {
				return fmt.Errorf("the error does not name its queue and engine: %v", err)
			}
			return nil
		}},
		"a heap that no memory can hold": {func(c *Config) { c.HeapBytes = 1 << 50 }, func(err error) error {
			_, bad := expect[*hip.MemoryError](err)
			return bad
		}},
		"a platform that does not exist": {func(c *Config) { c.Platform = "abacus" }, func(err error) error {
			_, bad := expect[*hip.PlatformError](err)
			return bad
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "an engine that fails its probe" {
				hostOnly(t, "packets that a test sees")
			}
			cfg := config(t, 3, NodeConfig{Intercept: probes})
			wrong := cfg
			c.change(&wrong)
			_, err := Open(context.Background(), wrong)
			if err := c.want(err); err != nil {
				t.Error(err)
			}
			if qs := cfg.Node.Queues(); len(qs) > 0 {
				t.Errorf("%d queues are left", len(qs))
			}
			broken.Store(false)
			run(t, cfg, func(ctx context.Context, r *Rank) error { return r.Barrier(ctx) })
		})
	}
}

// A rank's error, seen from Run: once, with its number.
func TestRunJoinsWhatEachRankFailedWith(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	w := open(t, config(t, 4, NodeConfig{}))
	err := w.Run(context.Background(), func(ctx context.Context, r *Rank) error {
		switch r.ID() {
		case 1:
			return one
		case 2:
			return two
		case 3:
			return r.Barrier(context.WithoutCancel(ctx)) // passes on who left
		}
		<-ctx.Done()
		return context.Cause(ctx) // passes on the first failure
	})
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("got %v, want both ranks' errors", err)
	}
	if n := strings.Count(err.Error(), "rank "); n != 2 {
		t.Errorf("%d ranks are named, want the two that failed: %v", n, err)
	}
	// A verdict that all share comes once.
	err = w.Run(context.Background(), func(ctx context.Context, r *Rank) error {
		_, err := r.Zeros(ctx, heap.Uint8, 1<<30)
		return err
	})
	if n := strings.Count(err.Error(), "no room"); n != 1 {
		t.Errorf("the verdict comes %d times: %v", n, err)
	}
}

func TestTheOthersContextsEndWithTheFirstFailureAsCause(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	var causes [3]error
	err := Run(context.Background(), config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		if r.ID() == 2 {
			return boom
		}
		<-ctx.Done()
		causes[r.ID()] = context.Cause(ctx)
		return nil
	})
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	for r, cause := range causes[:2] {
		if e, bad := expect[*Error](cause); bad != nil || e.Rank != 2 {
			t.Errorf("rank %d: the cause is %v", r, cause)
		}
	}
}

func TestOneRunAtATimeAndNoCloseMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := open(t, config(t, 2, NodeConfig{}))
	err := w.Run(ctx, func(ctx context.Context, r *Rank) error {
		for _, err := range []error{w.Run(ctx, nil), w.Close(ctx)} {
			if err := wantIs(err, ErrRunning); err != nil {
				return err
			}
		}
		return r.Barrier(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// What a Run leaves open is there in the next one, and after a Run that failed
// the ranks meet again whatever each had come to.
func TestAWorldRunsAsOftenAsOneLikes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := open(t, config(t, 3, NodeConfig{}))
	var xs, ys [3]*heap.Tensor
	boom := errors.New("boom")
	for i := range uint64(6) {
		err := w.Run(ctx, func(ctx context.Context, r *Rank) (err error) {
			if xs[r.ID()] == nil {
				ts, err := tensors(ctx, r, heap.Uint64, []int{1}, []int{1})
				if err != nil {
					return err
				}
				xs[r.ID()], ys[r.ID()] = ts[0], ts[1]
			}
			for range i * uint64(r.ID()) { // they come differently far
				if err := r.Meet(ctx, &Call{Op: "Meeting"}); err != nil {
					return err
				}
			}
			if i > 0 {
				return boom
			}
			return nil
		})
		if i > 0 && !errors.Is(err, boom) || i == 0 && err != nil {
			t.Fatal(err)
		}
		err = w.Run(ctx, func(ctx context.Context, r *Rank) error {
			x, y := xs[r.ID()], ys[r.ID()]
			err := errors.Join(fill(x, r.ID(), i), r.Put(ctx, right(r), y, x, PutOptions{}), r.Quiet(ctx, right(r)), r.Barrier(ctx))
			return errors.Join(err, check(y, left(r), i))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAClosedWorldRefusesEverything(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := config(t, 2, NodeConfig{})
	other := open(t, cfg) // keeps the queues alive
	for _, shared := range []bool{true, false} {
		if !shared {
			if err := other.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
		w, err := Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		var x [2]*heap.Tensor
		err = w.Run(ctx, func(ctx context.Context, r *Rank) (err error) {
			x[r.ID()], err = r.Zeros(ctx, heap.Uint64, 1)
			return err
		})
		if err := errors.Join(err, w.Close(ctx), w.Close(ctx)); err != nil {
			t.Fatal(err)
		}
		r := w.ranks[0]
		_, zeros := r.Zeros(ctx, heap.Uint8, 1)
		_, stream := r.NewStream()
		for op, err := range map[string]error{
			"Run":        w.Run(ctx, nil),
			"Barrier":    r.Barrier(ctx),
			"Zeros":      zeros,
			"NewStream":  stream,
			"Put":        r.Put(ctx, 1, x[0], x[0], PutOptions{}),
			"Quiet":      r.Quiet(ctx, 1),
			"Register":   w.Register(nil),
			"kernel Put": r.copier.Put(ctx, 1, kernels.Copy{}),
		} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", op, err)
			}
		}
		if err := r.Launch(kernels.Script, kernels.Grid(1), 0, 0); !errors.Is(err, hip.ErrClosed) {
			t.Errorf("Launch: got %v", err)
		}
		if _, bad := expect[*heap.FreedError](r.Store(x[0], 0, 1)); bad != nil {
			t.Error(bad)
		}
		if qs := w.Queues(); qs != nil {
			t.Errorf("it still has %d queues", len(qs))
		}
		// A queue that another world keeps is that world's alone; one that has
		// ended takes nothing, also from who still has it.
		q := r.queues[1]
		program, err := q.Compile(copyengine.Chain{})
		if err != nil {
			t.Fatal(err)
		}
		err = q.Put(ctx, hip.NewWaiter(), copyengine.Put{Program: program})
		if shared && err != nil || !shared && !errors.Is(err, copyengine.ErrEnded) {
			t.Errorf("shared %v: %v", shared, err)
		}
	}
}

func TestWorldsThatOpenAndCloseAtOnceShareTheirQueues(t *testing.T) {
	t.Parallel()
	cfg := config(t, 3, NodeConfig{})
	var group errgroup.Group
	for range 6 {
		group.Go(func() error {
			for round := range uint64(4) {
				err := Run(context.Background(), cfg, func(ctx context.Context, r *Rank) error {
					ts, err := tensors(ctx, r, heap.Uint8, []int{100}, []int{100})
					if err != nil {
						return err
					}
					err = errors.Join(fill(ts[0], r.ID(), round), r.Put(ctx, right(r), ts[1], ts[0], PutOptions{}), r.Quiet(ctx, right(r)), r.Barrier(ctx))
					return errors.Join(err, check(ts[1], left(r), round))
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Fatalf("%d queues are left", len(qs))
	}
}

// A world that closes first leaves the other's puts and data alone.
func TestAWorldThatClosesEarlyTakesNothingFromTheOther(t *testing.T) {
	hostOnly(t, "bubbles, in which all work is goroutines'")
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		cfg := config(t, 2, NodeConfig{})
		stays, leaves := open(t, cfg), open(t, cfg)
		var src, dst, flag *heap.Tensor
		err := stays.Run(ctx, func(ctx context.Context, r *Rank) error {
			ts, err := tensors(ctx, r, heap.Uint64, []int{8}, []int{8}, []int{1})
			if err != nil || r.ID() == 1 {
				return err
			}
			src, dst, flag = ts[0], ts[1], ts[2]
			return r.Put(ctx, 1, dst, src, PutOptions{After: flag, Value: 1})
		})
		if err != nil {
			t.Fatal(err)
		}
		err = leaves.Run(ctx, func(ctx context.Context, r *Rank) error {
			x, err := r.Zeros(ctx, heap.Uint64, 8)
			if err != nil || r.ID() == 1 {
				return err
			}
			return r.Put(ctx, 1, x, x, PutOptions{}) // behind the one that waits
		})
		if err := errors.Join(err, leaves.Close(ctx)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r := stays.ranks[0]
		if err := wantIs(r.Quiet(ended(ctx), 1), context.Canceled); err != nil {
			t.Fatalf("the other world let its Put go: %v", err)
		}
		if err := errors.Join(fill(src, 0, 9), r.Store(flag, 0, 1), r.Quiet(ctx, 1), check(dst.At(1), 0, 9)); err != nil {
			t.Error(err)
		}
		if f := r.Queue(1).Fault(); f != nil {
			t.Errorf("what the closed world had put met freed memory: %v", f)
		}
	})
}

// A kernel may outlive its rank's body. How it failed is told at the end.
func TestAKernelThatFailsBehindItsRanksBodyIsToldByClose(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		w, err := Open(ctx, config(t, 2, NodeConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		boom := errors.New("boom")
		late := &kernels.Kernel{Name: "late", Go: func(t *hip.Thread) {
			<-time.After(time.Second)
			t.Fail(boom)
		}}
		err = w.Run(ctx, func(ctx context.Context, r *Rank) error {
			if r.ID() == 1 {
				return r.Launch(late, kernels.Grid(1))
			}
			return nil
		})
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		err = w.Close(ctx)
		if e, bad := expect[*Error](err); bad != nil || e.Rank != 1 || !errors.Is(err, boom) {
			t.Errorf("Close: got %v, want the kernel's failure", err)
		}
	})
}

// A failure that Run has told is not told again.
func TestAKernelsFailureIsToldOnce(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	t.Parallel()
	ctx := context.Background()
	w, err := Open(ctx, config(t, 2, NodeConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err = w.Run(ctx, func(ctx context.Context, r *Rank) error {
		err := r.Launch(&kernels.Kernel{Name: "boom", Go: func(t *hip.Thread) { t.Fail(boom) }}, kernels.Grid(1))
		if err != nil {
			return err
		}
		// The other rank may have failed already, which ends ctx.
		if _, bad := expect[*hip.KernelError](r.Sync(context.WithoutCancel(ctx))); bad != nil {
			return bad
		}
		return nil // the kernel's failure is the rank's all the same
	})
	if n := strings.Count(err.Error(), "boom:"); err == nil || !errors.Is(err, boom) || n > 0 {
		t.Errorf("Run: got %v, want the kernel's failure", err)
	}
	if err := w.Close(ctx); err != nil {
		t.Errorf("Close: got %v, and Run had told it", err)
	}
}

func TestLaunchSaysWhichArgumentIsNone(t *testing.T) {
	t.Parallel()
	other := open(t, config(t, 1, NodeConfig{}))
	var foreign *heap.Tensor
	err := other.Run(context.Background(), func(ctx context.Context, r *Rank) (err error) {
		foreign, err = r.Zeros(ctx, heap.Uint8, 8)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		x, err := r.Zeros(ctx, heap.Uint8, 8)
		if err != nil {
			return err
		}
		for _, bad := range []any{nil, "text", []byte{1}, uint8(1), (*heap.Tensor)(nil), foreign, x.Rows(3, 99)} {
			e, wrong := expect[*ArgumentError](r.Launch(kernels.Script, kernels.Grid(1), x, bad))
			if wrong != nil {
				return fmt.Errorf("%T: %w", bad, wrong)
			}
			if e.Kernel != "script" || e.Rank != r.ID() || e.Index != 1 {
				return fmt.Errorf("the error is wrong: %v", e)
			}
		}
		return nil
	})
}

func TestArgumentsReachTheKernelWithTheirSize(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	t.Parallel()
	run(t, config(t, 1, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		x, err := r.Zeros(ctx, heap.Uint8, 8)
		if err != nil {
			return err
		}
		want := []uint64{x.Addr(), ^uint64(2), 1 << 40, 5, 0x40490fdb, 0x4010000000000000, 7<<32 - 1<<32}
		echo := &kernels.Kernel{Name: "echo", Go: func(t *hip.Thread) {
			for i, w := range want {
				if v := t.Arg(i); v != w {
					t.Fail(fmt.Errorf("argument %d is %#x, want %#x", i, v, w))
				}
			}
		}}
		err = r.Launch(echo, kernels.Grid(1), x, -3, int64(1<<40), int32(5), float32(3.14159274), float64(4), uint64(6<<32))
		return errors.Join(err, r.Sync(ctx))
	})
}

func TestATensorIsKeptWhileAKernelHasIt(t *testing.T) {
	hostOnly(t, "kernels that are Go functions")
	synctest.Test(t, func(t *testing.T) {
		run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
			x, err := r.Zeros(ctx, heap.Uint64, 100)
			if err != nil {
				return err
			}
			slow := &kernels.Kernel{Name: "slow", Go: func(t *hip.Thread) { <-time.After(time.Second) }}
			if err := r.Launch(slow, kernels.Grid(1), x); err != nil {
				return err
			}
			began := time.Now()
			if err := r.Free(ctx, x); err != nil {
				return err
			}
			if time.Since(began) < time.Second || r.World().Heap().Used() > 0 {
				return fmt.Errorf("after %v the heap has %d bytes in use", time.Since(began), r.World().Heap().Used())
			}
			return nil
		})
	})
}

// Whatever ends a body leaves no goroutine; TestMain looks for them.
func TestEverythingEndsWithTheWorld(t *testing.T) {
	for name, end := range map[string]func(context.Context, *Rank) error{
		"puts under way":  func(ctx context.Context, r *Rank) error { return nil },
		"an error":        func(ctx context.Context, r *Rank) error { return errors.New("boom") },
		"a panic":         func(ctx context.Context, r *Rank) error { panic("boom") },
		"Goexit":          func(ctx context.Context, r *Rank) error { runtime.Goexit(); return nil },
		"a wait for ever": func(ctx context.Context, r *Rank) error { <-ctx.Done(); return context.Cause(ctx) },
		"a kernel's panic": func(ctx context.Context, r *Rank) error {
			return r.Launch(&kernels.Kernel{Name: "boom", Go: func(*hip.Thread) { panic("boom") }}, kernels.Grid(3))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			cfg := config(t, 3, NodeConfig{})
			_ = Run(ctx, cfg, func(ctx context.Context, r *Rank) error {
				ts, err := tensors(ctx, r, heap.Uint64, []int{8}, []int{8}, []int{1}, []int{8})
				if err != nil {
					return err
				}
				for range 20 {
					if err := r.Put(ctx, right(r), ts[1], ts[0], PutOptions{}); err != nil {
						return err
					}
				}
				err = r.Put(ctx, left(r), ts[3], ts[0], PutOptions{After: ts[2], Value: 1}) // which nobody stores
				if err != nil {
					return err
				}
				if name == "a wait for ever" && r.ID() == 0 {
					cancel()
				}
				if r.ID() == 1 || name == "a wait for ever" {
					return end(ctx, r)
				}
				return nil
			})
			if qs := cfg.Node.Queues(); len(qs) > 0 {
				t.Errorf("%d queues are left", len(qs))
			}
		})
	}
}
