//go:build cgo && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/handcuda"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

const connectionSetting = "CUDA_DEVICE_MAX_CONNECTIONS"

// startFirst has a process start the driver before package hip does, and then
// say that it has more connections.
const startFirst = "SLUICE_TEST_START_FIRST"

func init() {
	if os.Getenv(startFirst) == "" {
		return
	}
	if err := handcuda.Start(library()); err != nil {
		panic(err)
	}
	os.Setenv(connectionSetting, "32")
}

// alone runs a test in a process of its own, which it spoils, with settings in
// its environment. It reports whether this is that process.
func alone(t *testing.T, settings ...string) bool {
	t.Helper()
	const mark = "SLUICE_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	device(t)
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, connectionSetting+"=") // which the driver's start has set
	}), append(settings, mark+"=1")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// A device that is lost ends the round of every rank with what the driver says,
// and the process can use it no more.
func TestADeviceThatFailsFailsEveryRanksPlan(t *testing.T) {
	lost := filepath.Join(t.TempDir(), "lost")
	if !alone(t, "FAKECUDA_LOST="+lost) {
		return
	}
	cfg := config(t, 2)
	cfg.CloseTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		ctx = context.WithoutCancel(ctx) // no rank learns of it by the other
		ctx, cancel := context.WithTimeout(ctx, patience/2)
		defer cancel()
		s, p, err := newPlan(ctx, r, 4, 256, 12)
		if err != nil {
			return err
		}
		if _, err = p.Start(ctx); err == nil {
			err = r.Barrier(ctx)
		}
		if err == nil && r.ID() == 0 {
			err = lose(s)
		}
		if err != nil {
			return err
		}
		err = p.Wait(ctx)
		driver := (*hip.CUDAError)(nil)
		if !errors.As(err, &driver) || driver.Device != "nvidia:0" || driver.Call == "" || driver.Code == 0 {
			return fmt.Errorf("got %w, want a *hip.CUDAError with call, device and code", err)
		}
		if st := p.State(); st != plan.Failed {
			return fmt.Errorf("the plan is %v, want FAILED", st)
		}
		return err
	})
	if driver := (*hip.CUDAError)(nil); !errors.As(err, &driver) || strings.Contains(err.Error(), "want") {
		t.Errorf("the world's error is %v", err)
	}
	if _, err := rank.Open(ctx, config(t, 2)); err == nil || !strings.Contains(err.Error(), "is lost to this process") {
		t.Errorf("another world: got %v, want that the device is lost", err)
	}
}

// lose makes the device fail: by a kernel that writes where nothing is, and the
// stand-in because the file is there.
func lose(s *sender) error {
	if !real {
		return os.WriteFile(os.Getenv("FAKECUDA_LOST"), nil, 0o600)
	}
	prog := kernels.NewProgram(1)
	prog.On(0).Store(8, 1)
	return s.launch(0, prog)
}

// A kernel that never ends is named by the Wait behind it and by the world's
// closing, and hangs neither.
func TestAKernelThatNeverEndsIsNamedAndHangsNothing(t *testing.T) {
	flag, err := device(t).AllocHost(64)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(t, 2)
	cfg.CloseTimeout = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var waited error
	err = rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		s, p, err := newPlan(ctx, r, 4, 256, 13)
		if err != nil {
			return err
		}
		if _, err := p.Start(ctx); err != nil || r.ID() == 1 {
			return errors.Join(err, r.Barrier(ctx))
		}
		prog := kernels.NewProgram(1)
		prog.On(0).Await(flag.Addr(), 1)
		err = s.launch(0, prog)
		soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		waited = p.Wait(soon)
		return errors.Join(err, r.Barrier(ctx))
	})
	if late := (*plan.TimeoutError)(nil); !errors.As(waited, &late) || !slices.Contains(late.Running, "script") {
		t.Errorf("Wait: got %v, want a *plan.TimeoutError that names the kernel", waited)
	}
	if stuck := (*hip.StuckError)(nil); !errors.As(err, &stuck) || !strings.Contains(stuck.What, "script") {
		t.Errorf("the world: got %v, want a *hip.StuckError that names the kernel", err)
	}
	flag.Word(0).Store(1)
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error { return r.Barrier(ctx) })
	flag.Free()
}

// A setting of the user's is kept, and counted with.
func TestTheUsersConnectionsAreCounted(t *testing.T) {
	if !alone(t, connectionSetting+"=8") {
		return
	}
	_, err := rank.Open(context.Background(), config(t, 4))
	if limit := (*hip.StreamLimitError)(nil); !errors.As(err, &limit) || limit.Connections != 8 {
		t.Errorf("4 ranks: got %v, want a *hip.StreamLimitError of 8 connections", err)
	}
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		return aPlanWorks(ctx, r, 4, 256, 14)
	})
}

// Somebody else in the process may have started the driver with fewer
// connections than it is said to have.
func TestADeviceWhoseStreamsShareConnectionsIsRefused(t *testing.T) {
	if !alone(t, connectionSetting+"=1", startFirst+"=1") {
		return
	}
	cfg := config(t, 4)
	_, err := rank.Open(context.Background(), cfg)
	if shared := (*hip.ProveError)(nil); !errors.As(err, &shared) {
		t.Errorf("got %v, want a *hip.ProveError", err)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Errorf("%d queues are left", len(qs))
	}
}
