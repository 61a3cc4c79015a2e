//go:build cgo && linux

package fakerocm_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

func TestAModuleRunsOnlyOnTheArchitectureItWasBuiltFor(t *testing.T) {
	use(t, fakerocm.HSA, 2)
	p, err := hip.Open("amd")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := p.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	image, err := kernels.BuiltinImage("gfx90a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = dev.Load(image.Bytes)
	if e := has[*hip.ROCmError](t, err, "amd:1", "gfx942", "hipErrorNoBinaryForGpu"); e.Device != 1 || e.Code != 209 {
		t.Errorf("the error is %+v", e)
	}
	if image, err = kernels.BuiltinImage(dev.Properties().Arch); err != nil {
		t.Fatal(err)
	}
	m, err := dev.Load(image.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Function("nosuch")
	has[*hip.ROCmError](t, err, "nosuch", "hipErrorNotFound")
	if err := m.Unload(); err != nil {
		t.Error(err)
	}
}

func TestAKernelThatFailsIsNamedWithItsDevice(t *testing.T) {
	use(t, fakerocm.HSA, 2)
	before := settled(t, 2)
	cfg := config(t, 2, rank.NodeConfig{})
	err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
		g, err := newGather(ctx, r)
		if err != nil {
			return err
		}
		// A handle of another layout traps.
		if err := r.Launch(kernels.Fill, hip.Grid{Blocks: 1, Threads: 1}, g.out, g.out, 0, 8, 1, 8, 1, 0); err != nil {
			return err
		}
		return errors.Join(r.Sync(ctx), g.plan.Close(ctx))
	})
	if e := has[*hip.KernelError](t, err, "hipErrorLaunchFailure"); e.Kernel != "fill" || !slices.Contains([]string{"amd:0", "amd:1"}, e.Device) {
		t.Errorf("the error is %+v", e)
	}
	nothingLeft(t, before, cfg.Node)
}

func TestALaunchThatNoDeviceCouldRunIsRefused(t *testing.T) {
	use(t, fakerocm.HSA, 2)
	err := rank.Run(t.Context(), config(t, 1, rank.NodeConfig{}), func(ctx context.Context, r *rank.Rank) error {
		for _, grid := range []hip.Grid{{Blocks: 0, Threads: 1}, {Blocks: 1, Threads: 5}, {Blocks: 1, Threads: -1}} {
			err := r.Launch(kernels.Script, grid, 0, 0)
			if e := (*hip.LaunchError)(nil); !errors.As(err, &e) || e.Kernel != "script" || e.Device != "amd:0" {
				return errors.Join(errors.New("got no *hip.LaunchError"), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatROCmLacksIsSaidInOneLine(t *testing.T) {
	use(t, fakerocm.HSA, 2)
	t.Setenv(hip.ROCmSetting, t.TempDir())
	_, err := hip.Open("amd")
	e := has[*hip.LibraryError](t, err, "libamdhip64.so.7", hip.ROCmSetting)
	if e.Platform != "amd" || slices.Contains([]byte(err.Error()), '\n') {
		t.Errorf("the error is %q", err)
	}
}

func TestADeviceThatSysfsDoesNotHaveIsNamed(t *testing.T) {
	use(t, fakerocm.HSA, 4)
	t.Setenv(hip.SysfsSetting, fakerocm.Sysfs(2))
	p, err := hip.Open("amd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Device(1); err != nil {
		t.Error(err)
	}
	_, err = p.Device(2)
	if e := has[*hip.TopologyError](t, err, hip.SysfsSetting); e.Device != "amd:2" || e.Location != "0000:33:00.0" {
		t.Errorf("the error is %+v", e)
	}
	t.Setenv(hip.SysfsSetting, copyTree(t, 4, "gfx_target_version 90402", "gfx_target_version 110000"))
	if p, err = hip.Open("amd"); err != nil {
		t.Fatal(err)
	}
	_, err = p.Device(0)
	if e := has[*hip.GenerationError](t, err); e.Arch != "gfx1100" {
		t.Errorf("the error is %+v", e)
	}
}
