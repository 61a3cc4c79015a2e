package peers

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
)

// alone says that a test runs in a process of its own, where no GPU can reach
// another yet.
const alone = "SLUICE_PEERS_ALONE"

// The driver may wait for everything that GPUs do before it lets one reach
// another.
func TestGPUsThatCannotReachEachOtherYetAreRefusedWhileAPlanWaits(t *testing.T) {
	if devices(t) < 3 {
		t.Skip("with two GPUs each can reach the other once a world has both")
	}
	if os.Getenv(alone) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	on := func(devices ...int) rank.Config {
		node, err := rank.NewNode(rank.NodeConfig{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := rank.Config{Ranks: len(devices), Platform: "nvidia", Node: node, HeapBytes: 1 << 20}
		for _, d := range devices {
			cfg.Placement = append(cfg.Placement, rank.Placement{Device: d})
		}
		return cfg
	}
	for d := range 3 { // each has what it needs but for the others
		w, err := rank.Open(ctx, on(d))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.Close(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}()
	}
	idle := func(context.Context, *rank.Rank) error { return nil }
	err := rank.Run(ctx, on(0, 1), func(ctx context.Context, r *rank.Rank) error {
		out, err := r.Zeros(ctx, heap.Uint8, 2, 4096)
		if err != nil {
			return err
		}
		p, err := plan.NewAllGather(ctx, r, out, nil)
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			var busy *hip.BusyError
			if err := rank.Run(ctx, on(1, 2), idle); !errors.As(err, &busy) || !strings.HasPrefix(busy.Op, "reaching") {
				t.Errorf("opening a world on two other GPUs: %v, want a *hip.BusyError about reaching memory", err)
			}
		}
		return p.Close(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := rank.Run(ctx, on(1, 2), idle); err != nil {
		t.Errorf("when the plan is closed: %v", err)
	}
}
