//go:build cgo && linux

package fakerocm_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
	"github.com/triggeredplans/sluice/rank"
)

// A world whose opening meets a misbehaviour is not opened: the error comes in
// time, says what is wrong, and everything is taken down again.
func TestWhatGoesWrongAtOpeningIsAnErrorAndLeavesNothing(t *testing.T) {
	// With a recommendation for every link, an engine is always that of one pair.
	// A busy machine lets the engines that are well take their time.
	const devices, ranks, probe = 8, 4, 8 * time.Second
	for _, c := range []struct {
		name, told string
		check      func(t *testing.T, way fakerocm.Way, err error)
	}{
		{"a dead engine", "dead=2:12", func(t *testing.T, _ fakerocm.Way, err error) {
			has[*copyengine.ProbeError](t, err, "amd:2→amd:3", "SDMA engine 12 of amd:2", "deadline")
		}},
		{"an engine that the runtime reports", "error=1:10:0", func(t *testing.T, way fakerocm.Way, err error) {
			has[*copyengine.ProbeError](t, err, "amd:1→amd:3", "SDMA engine 10 of amd:1")
			if way == fakerocm.HSA { // KFD has nobody to report it
				has[*hip.ROCmError](t, err, "HSA_STATUS_ERROR_EXCEPTION")
			}
		}},
		{"a refused queue", "refuse=2:1", func(t *testing.T, way fakerocm.Way, err error) {
			e := has[*hip.ROCmError](t, err, "amd:2")
			if want := map[fakerocm.Way]string{fakerocm.HSA: "hsa_amd_queue_create", fakerocm.KFD: "AMDKFD_IOC_CREATE_QUEUE"}[way]; !strings.Contains(err.Error(), want) || e.Device != 2 {
				t.Errorf("device %d: %v does not name %s", e.Device, err, want)
			}
		}},
		{"no memory", "memory=100000", func(t *testing.T, _ fakerocm.Way, err error) {
			e := has[*hip.MemoryError](t, err, "amd:0", "hipErrorOutOfMemory")
			if e.Bytes != 1<<20 {
				t.Errorf("%d bytes were asked for", e.Bytes)
			}
		}},
		{"a peer that cannot be reached", "no_access=1:3", func(t *testing.T, _ fakerocm.Way, err error) {
			e := has[*hip.PeerError](t, err)
			if e.Device != "amd:1" || e.Peer != "amd:3" {
				t.Errorf("the pair is %s and %s", e.Device, e.Peer)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, devices, func(t *testing.T, way fakerocm.Way) {
				before := settled(t, ranks)
				tell(t, devices, c.told)
				cfg := config(t, ranks, rank.NodeConfig{ProbeTimeout: probe})
				began := time.Now()
				w, err := rank.Open(t.Context(), cfg)
				if err == nil {
					_ = w.Close(context.Background())
					t.Fatal("the world opened")
				}
				if d := time.Since(began); d > patience/2 {
					t.Errorf("the error took %v", d)
				}
				c.check(t, way, err)
				nothingLeft(t, before, cfg.Node)
			})
		})
	}
}

func TestTheEngineOfEveryPairIsToldByDescribe(t *testing.T) {
	both(t, 4, func(t *testing.T, way fakerocm.Way) {
		w, err := rank.Open(t.Context(), config(t, 4, rank.NodeConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close(context.Background())
		d := w.Describe()
		made := map[fakerocm.Way]string{fakerocm.HSA: "hsa_amd_queue_create", fakerocm.KFD: "KFD queue type 4"}[way]
		for _, p := range d.Pairs {
			var engine, device int
			if _, err := fmt.Sscanf(p.Engine, "SDMA engine %d of amd:%d,", &engine, &device); err != nil || device != p.From {
				t.Errorf("%d to %d: %q", p.From, p.To, p.Engine)
			}
			if engine%2 != 0 || engine < 2 { // the device's odd engines are fused off
				t.Errorf("%d to %d is on engine %d", p.From, p.To, engine)
			}
			if !strings.Contains(p.Engine, made) || !strings.Contains(p.Engine, "SDMA 4.4") {
				t.Errorf("%q does not say %q", p.Engine, made)
			}
			if line := fmt.Sprintf("rank %d → rank %d: %s", p.From, p.To, p.Engine); !strings.Contains(d.String(), line) {
				t.Errorf("%q is not in %v", line, d)
			}
		}
		if len(d.Pairs) != 12 {
			t.Errorf("%d pairs are described, want 12", len(d.Pairs))
		}
	})
}

func TestTheLibrariesThatWereOpenedAreToldByDescribe(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		w, err := rank.Open(t.Context(), config(t, 2, rank.NodeConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close(context.Background())
		dir := os.Getenv(hip.ROCmSetting)
		for _, want := range []string{"from " + dir + " ", dir + "/libamdhip64.so", dir + "/libhsa-runtime64.so", os.Getenv(hip.KFDSetting), os.Getenv(hip.SysfsSetting)} {
			if text := w.Describe().Platform; dir == "" || !strings.Contains(text, want) {
				t.Errorf("%q is not in %q", want, text)
			}
		}
	})
}

func TestKernelsBefore117AreAskedForAQueueOfTheLinksKind(t *testing.T) {
	use(t, fakerocm.KFD, 2)
	for _, c := range []struct {
		minor int
		want  string
	}{{18, "KFD queue type 4"}, {17, "KFD queue type 4"}, {16, "KFD queue type 3"}} {
		tell(t, 2, fmt.Sprintf("kfd_minor=%d", c.minor))
		w, err := rank.Open(t.Context(), config(t, 2, rank.NodeConfig{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range w.Describe().Pairs {
			if !strings.Contains(p.Engine, c.want) {
				t.Errorf("with interface 1.%d: %q does not say %q", c.minor, p.Engine, c.want)
			}
		}
		if err := w.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhereTheHSARuntimeRefusesKFDMakesTheQueues(t *testing.T) {
	const devices = 4
	use(t, fakerocm.HSA, devices)
	before := settled(t, devices)
	tell(t, devices, "no_hsa=1")
	cfg := config(t, devices, rank.NodeConfig{})
	err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
		for peer := range r.Size() {
			if peer != r.ID() && !strings.Contains(r.Queue(peer).Engine(), "KFD queue type 4") {
				return fmt.Errorf("the queue to rank %d is on %s", peer, r.Queue(peer).Engine())
			}
		}
		return rounds(2)(ctx, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, before, cfg.Node)
}
