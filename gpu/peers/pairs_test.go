package peers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/rank"
)

// open opens a world of so many ranks on all devices.
func open(t *testing.T, ranks int) *rank.World {
	t.Helper()
	node, err := rank.NewNode(rank.NodeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := rank.Open(ctx, rank.Config{Ranks: ranks, Platform: "nvidia", Node: node, HeapBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestEveryPairOfGPUsHasACopyEngineFromDeviceToDevice(t *testing.T) {
	n := devices(t)
	d := open(t, n).Describe()
	t.Log(d)
	for _, r := range d.Ranks {
		if want := fmt.Sprintf("nvidia:%d", r.Rank); r.Device != want || r.Memory != hip.DeviceMemory {
			t.Errorf("rank %d lives on %s in %s memory, want %s in the device's", r.Rank, r.Device, r.Memory, want)
		}
	}
	pairs := map[[2]int]bool{}
	for _, p := range d.Pairs {
		pairs[[2]int{p.From, p.To}] = true
		if want := fmt.Sprintf("copy engine of nvidia:%d, device to device", p.From); !strings.HasPrefix(p.Engine, want) {
			t.Errorf("rank %d sends to rank %d by %q, want a %s", p.From, p.To, p.Engine, want)
		}
	}
	if len(pairs) != n*(n-1) {
		t.Errorf("%d of %d pairs are described", len(pairs), n*(n-1))
	}
}

func TestNoPairOfTwiceAsManyRanksAsGPUsTakesComputeUnits(t *testing.T) {
	n := 2 * devices(t)
	d := open(t, n).Describe()
	t.Log(d)
	for _, p := range d.Pairs {
		if strings.Contains(p.Engine, "compute units") {
			t.Errorf("rank %d sends to rank %d by %q", p.From, p.To, p.Engine)
		}
	}
	if len(d.Pairs) != n*(n-1) {
		t.Errorf("%d of %d pairs are described", len(d.Pairs), n*(n-1))
	}
}
