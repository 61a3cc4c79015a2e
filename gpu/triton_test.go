package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// fillAsTriton is the built-in kernel fill in the form in which Triton's come.
func fillAsTriton(t *testing.T, arch string, hidden ...string) fstest.MapFS {
	t.Helper()
	image, err := kernels.BuiltinImage(arch)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(image.Bytes)
	var arguments []map[string]any
	for _, name := range kernels.Fill.Args {
		arguments = append(arguments, map[string]any{"name": name, "type": "i64"})
	}
	arguments[0]["type"], arguments[1]["type"] = "*i64", "*i8"
	text, err := json.Marshal(map[string]any{
		"name": "fill", "entry": "fill", "arch": arch, "warps": 1, "warp_size": 4, "shared": 100 << 10,
		"arguments": arguments, "hidden": hidden,
		"binary": map[string]any{"file": "fill.bin", "sha256": hex.EncodeToString(sum[:])},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"fill.json": {Data: text}, "fill.bin": {Data: image.Bytes}}
}

// A kernel with much dynamic shared memory, as Triton's have, fills and marks.
func TestATritonKernelTakesPartInAPlan(t *testing.T) {
	const width, rounds = 4096, 5
	run(t, config(t, 2), func(ctx context.Context, r *rank.Rank) error {
		all, err := kernels.LoadTritonFS(r.Device(), fillAsTriton(t, r.Device().Properties().Arch))
		if err != nil {
			return err
		}
		fill, err := all.Kernel("fill")
		if err != nil {
			return err
		}
		out, err := r.Zeros(ctx, heap.Uint8, r.Size(), width)
		if err != nil {
			return err
		}
		p, err := plan.NewAllGather(ctx, r, out, nil)
		if err != nil {
			return err
		}
		for {
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			w := out.Rows(r.ID(), r.ID()+1).Window()
			grid, args, err := fill.Launch(1, nil, h, out, int(w.Offset), width, 1, width, 5, p.FirstChunk())
			if err != nil {
				return err
			}
			if err := r.Launch(fill.Kernel, grid, args...); err != nil {
				return err
			}
			if err := p.Wait(ctx); err != nil {
				return err
			}
			got := make([]byte, out.Size())
			if err := out.Read(got); err != nil {
				return err
			}
			for of := range r.Size() {
				if n := kernels.CheckPattern(got[of*width:(of+1)*width], kernels.SeedOf(5, of, h.Round()), uint64(of*width)); n > 0 {
					t.Errorf("rank %d, round %d: %d bytes of rank %d are wrong", r.ID(), h.Round(), n, of)
				}
			}
			if h.Round() == rounds {
				return p.Close(ctx)
			}
			if err := p.NextRound(ctx); err != nil {
				return err
			}
		}
	})
}

func TestAKernelThatTakesOtherArgumentsThanDescribedIsNotLaunched(t *testing.T) {
	run(t, config(t, 1), func(ctx context.Context, r *rank.Rank) error {
		all, err := kernels.LoadTritonFS(r.Device(), fillAsTriton(t, r.Device().Properties().Arch, "global_scratch"))
		if err != nil {
			return err
		}
		fill, err := all.Kernel("fill")
		if err != nil {
			return err
		}
		grid, args, err := fill.Launch(1, nil, uint64(0), uint64(0), 0, 0, 0, 0, 0, 0)
		if err != nil {
			return err
		}
		var l *hip.LaunchError
		if err := r.Launch(fill.Kernel, grid, args...); !errors.As(err, &l) {
			t.Errorf("error %v, want a *hip.LaunchError", err)
		}
		return nil
	})
}

func TestSharedMemoryThatTheDeviceDoesNotHaveIsRefused(t *testing.T) {
	d := device(t)
	all, err := kernels.LoadTritonFS(d, fillAsTriton(t, d.Properties().Arch))
	if err != nil {
		t.Fatal(err)
	}
	fill, err := all.Kernel("fill")
	if err != nil {
		t.Fatal(err)
	}
	var e *hip.CUDAError
	if err := fill.Loaded.Share(1 << 20); !errors.As(err, &e) {
		t.Errorf("error %v, want a *hip.CUDAError", err)
	}
	if err := (&hip.Function{Name: "host"}).Share(1); !errors.Is(err, hip.ErrNoModules) {
		t.Errorf("a Go function: error %v, want ErrNoModules", err)
	}
}
