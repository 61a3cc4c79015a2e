package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// Each test here has what hangs the process when one uses the driver carelessly.

// The first launch of a kernel would load its code, which waits for the device.
func TestTheFirstLaunchOfAKernelRunsBehindWaitingChains(t *testing.T) {
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 4, 256, 1)
		if err != nil {
			return err
		}
		// Chains wait now. Nothing has been launched in this world.
		if err := errors.Join(r.Launch(kernels.Script, kernels.Grid(1), 0, s.program), r.Sync(ctx)); err != nil {
			return err
		}
		return errors.Join(s.round(ctx, p), p.Close(ctx))
	})
}

// Streams that share a connection wait for each other.
func TestAStreamTooManyIsRefusedAndTheOthersWork(t *testing.T) {
	run(t, config(t, 3), func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 4, 256, 2)
		if err != nil {
			return err
		}
		var many []*rank.Stream
		if r.ID() == 0 {
			for {
				st, err := r.NewStream()
				if err != nil {
					limit := (*hip.StreamLimitError)(nil)
					if !errors.As(err, &limit) || limit.Connections != 32 {
						return fmt.Errorf("got %w, want a *hip.StreamLimitError", err)
					}
					break
				}
				many = append(many, st)
			}
			if len(many) > 31 {
				return fmt.Errorf("there were %d streams more", len(many))
			}
		}
		// Kernels run on all of them while chains wait.
		for _, st := range many {
			if err := errors.Join(st.Launch(kernels.Script, kernels.Grid(1), 0, s.program), st.Sync(ctx)); err != nil {
				return err
			}
		}
		return errors.Join(r.Barrier(ctx), s.round(ctx, p), p.Close(ctx))
	})
}

func TestAWorldOfMoreRanksThanTheDeviceHasStreamsIsRefused(t *testing.T) {
	cfg := config(t, 17)
	cfg.HeapBytes = 1 << 20
	_, err := rank.Open(context.Background(), cfg)
	if limit := (*hip.StreamLimitError)(nil); !errors.As(err, &limit) {
		t.Fatalf("got %v, want a *hip.StreamLimitError", err)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Errorf("%d queues are left", len(qs))
	}
	run(t, config(t, 4), func(ctx context.Context, r *rank.Rank) error { return r.Barrier(ctx) })
}

// uneven is one chunk of n copies of 16 bytes at distances that are not equal.
func uneven(w schedule.Window, n int) schedule.Schedule {
	c := schedule.Chunk{Writers: 1}
	at := w.Offset
	for i := range n {
		c.Regions = append(c.Regions, schedule.Region{Offset: at, Width: 16, Height: 1, Pitch: 16})
		at += 16 * int64(2+i%3)
	}
	return schedule.Schedule{c}
}

// A submission to a full stream blocks inside the driver.
func TestWhatAStreamMightNotHoldIsRefusedBeforeItIsSubmitted(t *testing.T) {
	for _, c := range []struct {
		name, unit string
		chunks     func(w schedule.Window) (schedule.Schedule, error)
	}{
		{"commands", "commands", func(w schedule.Window) (schedule.Schedule, error) {
			return schedule.Chunks(w, 1, schedule.Options{})
		}},
		{"copies in batches", "copies in batches", func(w schedule.Window) (schedule.Schedule, error) {
			return uneven(w, 12_001), nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
				out, err := r.Zeros(ctx, heap.Uint8, 2*200, 4096)
				if err != nil {
					return err
				}
				var chunks schedule.Schedule
				if r.ID() == 0 {
					if chunks, err = c.chunks(out.Rows(0, 200).Window()); err != nil {
						return err
					}
				}
				_, err = plan.New(ctx, r, out, chunks)
				full := (*copyengine.CapacityError)(nil)
				if !errors.As(err, &full) || full.Unit != c.unit || full.Held != 0 || full.Want <= full.Limit {
					return fmt.Errorf("got %w, want that there is no room for so many %s", err, c.unit)
				}
				s, err := newSender(ctx, r, 90, 64, 3) // more than half of what fits
				if err != nil {
					return err
				}
				p, err := plan.New(ctx, r, s.out, s.chunks)
				if err != nil {
					return err
				}
				if _, err := plan.New(ctx, r, s.out, s.chunks); err != nil {
					if !errors.As(err, &full) {
						return err
					}
				} else {
					return errors.New("a second plan of 271 commands fits beside the first, in 510")
				}
				return errors.Join(s.round(ctx, p), p.NextRound(ctx), s.round(ctx, p), p.Close(ctx))
			})
		})
	}
}

// The driver's copies between two buffers of the host block their caller.
func TestTwoHostPlacedRanksAreCarriedWithoutTheDriver(t *testing.T) {
	cfg := config(t, 2)
	cfg.Placement = []rank.Placement{{Memory: hip.HostMemory}, {Memory: hip.HostMemory}}
	w, err := rank.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	for _, p := range w.Describe().Pairs {
		if !strings.Contains(p.Engine, "software engine") {
			t.Errorf("from %d to %d: %s", p.From, p.To, p.Engine)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = w.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 8, 3000, 4)
		if err != nil {
			return err
		}
		for range 20 {
			if err := errors.Join(s.round(ctx, p), p.NextRound(ctx)); err != nil {
				return err
			}
		}
		return p.Close(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Allocating, freeing and loading wait for all that the device does.
func TestNothingWaitsForAPlanThatIsNotMarked(t *testing.T) {
	device(t)
	image, err := kernels.BuiltinImage("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte("// another module\n"), image.Bytes...)
	run(t, config(t, 3), func(ctx context.Context, r *rank.Rank) error {
		a, err := newSender(ctx, r, 4, 512, 5)
		if err != nil {
			return err
		}
		spare, err := r.Zeros(ctx, heap.Uint8, 1<<20)
		if err != nil {
			return err
		}
		pa, err := plan.New(ctx, r, a.out, a.chunks)
		if err != nil {
			return err
		}
		ha, err := pa.Start(ctx) // and nothing is marked
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		b, err := newSender(ctx, r, 3, 300, 6) // Zeros
		if err != nil {
			return err
		}
		pb, err := plan.New(ctx, r, b.out, b.chunks)
		if err != nil {
			return err
		}
		if err := r.Free(ctx, spare); err != nil {
			return err
		}
		if _, err := kernels.Load(r.Device(), other); !isBusy(err) {
			return fmt.Errorf("loading a module: got %v, want a *hip.BusyError", err)
		}
		if _, err := r.Device().Alloc(4 << 30); !isBusy(err) {
			return fmt.Errorf("allocating: got %v, want a *hip.BusyError", err)
		}
		err = errors.Join(a.produce(pa, ha), pa.Wait(ctx), a.check(1))
		return errors.Join(err, b.round(ctx, pb), pb.Close(ctx), pa.Close(ctx))
	})
	m, err := kernels.Load(device(t), other)
	if err != nil {
		t.Fatalf("when nothing waits: %v", err)
	}
	if err := m.Unload(); err != nil {
		t.Error(err)
	}
}

func isBusy(err error) bool {
	busy := (*hip.BusyError)(nil)
	return errors.As(err, &busy)
}

// A second world opens, works and closes while the first one's chains wait.
func TestAWorldOpensAndClosesWhileAnotherWaits(t *testing.T) {
	cfg := config(t, 2)
	cfg.HeapBytes = 1 << 20
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 4, 256, 7)
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			other := cfg
			if other.Node, err = rank.NewNode(rank.NodeConfig{}); err != nil {
				return err
			}
			err = rank.Run(ctx, other, func(ctx context.Context, r *rank.Rank) error {
				return aPlanWorks(ctx, r, 4, 128, 8)
			})
			if err != nil {
				return err
			}
		}
		return errors.Join(r.Barrier(ctx), s.round(ctx, p), p.Close(ctx))
	})
}

// Opening has idle queues wait at a gate of its own. What another world submits
// at that moment must not come in front of it: that world's gates stay closed
// until the opening has ended.
func TestAWorldOpensWhileAnotherPreparesOnTheSameQueues(t *testing.T) {
	cfg := config(t, 2)
	cfg.HeapBytes = 1 << 20
	const opens = 30
	opened := make([]chan struct{}, 2) // one for each rank of the other world
	for i := range opened {
		opened[i] = make(chan struct{}, opens)
	}
	var group errgroup.Group
	group.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for range opens {
			w, err := rank.Open(ctx, cfg)
			if err != nil {
				return err
			}
			for _, ch := range opened {
				ch <- struct{}{}
			}
			if err := w.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 4, 256, 11)
		if err != nil {
			return err
		}
		for i := range opens {
			select {
			case <-opened[r.ID()]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := s.round(ctx, p); err != nil {
				return err
			}
			if i < opens-1 {
				if err := p.NextRound(ctx); err != nil {
					return err
				}
			}
		}
		return p.Close(ctx)
	})
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// fullGrid is more CTAs than the device runs at once.
func fullGrid() int {
	if real {
		return 4096
	}
	return 48
}

// A producer that fills the device leaves no room for a kernel that would look
// whether it is done, and consumers wait beside it.
func TestAProducerThatFillsTheDeviceEndsWithConsumersOnBothRanks(t *testing.T) {
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		g, err := newGather(ctx, r, 256, 1024)
		if err != nil {
			return err
		}
		p, err := plan.New(ctx, r, g.out, g.parts[r.ID()])
		if err != nil {
			return err
		}
		for {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(g.launch(h, fullGrid()), p.Wait(ctx), g.check(h.Round())); err != nil {
				return err
			}
			if h.Round() == 5 {
				return p.Close(ctx)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
	})
}

func TestKernelsThatWaitMustLeaveRoom(t *testing.T) {
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		program, err := r.Zeros(ctx, heap.Uint64, 8)
		if err != nil || r.ID() == 1 {
			return err
		}
		err = r.Launch(kernels.Script, kernels.Waits(kernels.Grid(fullGrid())), 0, program)
		if full := (*hip.RoomError)(nil); !errors.As(err, &full) {
			return fmt.Errorf("got %w, want a *hip.RoomError", err)
		}
		return errors.Join(r.Launch(kernels.Script, kernels.Waits(kernels.Grid(8)), 0, program), r.Sync(ctx))
	})
}

// Copies within one device run on its compute units.
func TestTwoHeapsOnOneDeviceAreRefusedUnlessAllowed(t *testing.T) {
	cfg := config(t, 2)
	cfg.Placement = []rank.Placement{{Memory: hip.DeviceMemory}, {Memory: hip.DeviceMemory}}
	_, err := rank.Open(context.Background(), cfg)
	if compute := (*rank.ComputeError)(nil); !errors.As(err, &compute) {
		t.Fatalf("got %v, want a *rank.ComputeError", err)
	}
	cfg.AllowComputeCopies = true
	run(t, cfg, func(ctx context.Context, r *rank.Rank) error {
		for _, p := range r.World().Describe().Pairs {
			if !strings.Contains(p.Engine, "compute units") {
				return fmt.Errorf("from %d to %d: %s", p.From, p.To, p.Engine)
			}
		}
		return aPlanWorks(ctx, r, 4, 256, 10)
	})
}

func TestLaunchesThatTheDriverWouldNotCheckAreRefused(t *testing.T) {
	run(t, config(t, 1), func(ctx context.Context, r *rank.Rank) error {
		for name, err := range map[string]error{
			"too few arguments":  r.Launch(kernels.Script, kernels.Grid(1), 0),
			"too many arguments": r.Launch(kernels.Script, kernels.Grid(1), 0, 0, 0),
			"a short argument":   r.Launch(kernels.Script, kernels.Grid(1), 0, int32(0)),
			"no CTAs":            r.Launch(kernels.Script, kernels.Grid(0), 0, 0),
			"too many threads":   r.Launch(kernels.Script, hip.Grid{Blocks: 1, Threads: 4096}, 0, 0),
		} {
			if refused := (*hip.LaunchError)(nil); !errors.As(err, &refused) {
				return fmt.Errorf("%s: got %v, want a *hip.LaunchError", name, err)
			}
		}
		err := r.Launch(&kernels.Kernel{Name: "nosuch"}, kernels.Grid(1))
		if unknown := (*rank.KernelError)(nil); !errors.As(err, &unknown) {
			return fmt.Errorf("got %w, want a *rank.KernelError", err)
		}
		return nil
	})
}
