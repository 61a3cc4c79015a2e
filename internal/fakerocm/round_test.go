//go:build cgo && linux

package fakerocm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
	"github.com/triggeredplans/sluice/rank"
)

func TestEveryByteIsGatheredOnEveryNumberOfDevices(t *testing.T) {
	for _, devices := range []int{2, 4, 8} {
		t.Run(fmt.Sprint(devices), func(t *testing.T) {
			both(t, devices, func(t *testing.T, _ fakerocm.Way) {
				before := settled(t, devices)
				cfg := config(t, devices, rank.NodeConfig{})
				if err := rank.Run(t.Context(), cfg, rounds(5)); err != nil {
					t.Fatal(err)
				}
				nothingLeft(t, before, cfg.Node)
			})
		})
	}
}

func TestRanksThatShareADeviceGatherToo(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		before := settled(t, 5)
		cfg := config(t, 5, rank.NodeConfig{})
		if err := rank.Run(t.Context(), cfg, rounds(3)); err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, before, cfg.Node)
	})
}

func TestMemoryThatTheHostCannotMapIsGatheredToo(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		t.Setenv(hip.SysfsSetting, copyTree(t, 2, "heap_type 1", "heap_type 2"))
		before := settled(t, 2)
		cfg := config(t, 2, rank.NodeConfig{})
		err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
			if r.Memory().Mapped() {
				return errors.New("the heap is mapped")
			}
			return rounds(4)(ctx, r)
		})
		if err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, before, cfg.Node)
	})
}

// verdicts collects each rank's error.
type verdicts struct {
	mu   sync.Mutex
	errs map[int]error
}

// of runs body and keeps the error.
func (v *verdicts) of(body func(context.Context, *rank.Rank) error) func(context.Context, *rank.Rank) error {
	v.errs = map[int]error{}
	return func(ctx context.Context, r *rank.Rank) error {
		err := body(ctx, r)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.errs[r.ID()] = err
		return err
	}
}

// An engine that stops in a round fails the plan on every rank, in time, and
// nothing is left behind; the next world works.
func TestAnEngineThatStopsFailsItsPlanOnEveryRank(t *testing.T) {
	// A busy machine lets the engines that are well take their time.
	const devices, ranks, patient = 8, 4, 4 * time.Second
	for _, c := range []struct {
		name, told string
		check      func(t *testing.T, way fakerocm.Way, err error)
	}{
		// One packet is the probe's fence; a round's first is a poll.
		{"in silence", "stall=1:2:3", func(t *testing.T, _ fakerocm.Way, err error) {
			e := has[*copyengine.StallError](t, err, "amd:1→amd:2", "SDMA engine 2 of amd:1")
			if e.At >= e.Rung || e.After < patient {
				t.Errorf("the error's figures are wrong: %+v", e)
			}
		}},
		{"and the runtime says so", "error=1:2:3", func(t *testing.T, way fakerocm.Way, err error) {
			if way == fakerocm.KFD { // which has nobody to say so
				has[*copyengine.StallError](t, err, "amd:1→amd:2")
				return
			}
			e := has[*hip.ROCmError](t, err, "amd:1→amd:2", "HSA_STATUS_ERROR_EXCEPTION")
			if e.Device != 1 {
				t.Errorf("it names device %d", e.Device)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, devices, func(t *testing.T, way fakerocm.Way) {
				before := settled(t, ranks)
				tell(t, devices, c.told)
				cfg := config(t, ranks, rank.NodeConfig{StallTimeout: patient})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				var v verdicts
				began := time.Now()
				err := rank.Run(ctx, cfg, v.of(rounds(2)))
				if d := time.Since(began); d > patience/2 {
					t.Errorf("it took %v", d)
				}
				has[*copyengine.FaultError](t, err)
				c.check(t, way, err)
				for r := range ranks {
					if v.errs[r] == nil {
						t.Errorf("rank %d has no error", r)
					}
				}
				nothingLeft(t, before, cfg.Node)
				tell(t, devices, "")
				if err := rank.Run(t.Context(), config(t, ranks, rank.NodeConfig{}), rounds(2)); err != nil {
					t.Errorf("the next world: %v", err)
				}
			})
		})
	}
}

func TestASlowEngineIsNoFault(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		// Two rounds take longer than the patience, and no packet does.
		tell(t, 2, "slow=*:14:200000") // microseconds for each packet
		cfg := config(t, 2, rank.NodeConfig{StallTimeout: 2 * time.Second})
		if err := rank.Run(t.Context(), cfg, rounds(2)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAGateThatStaysClosedIsNoFaultHoweverLong(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		const patient = 2 * time.Second
		cfg := config(t, 2, rank.NodeConfig{StallTimeout: patient})
		err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
			g, err := newGather(ctx, r)
			if err != nil {
				return err
			}
			// Nobody marks for a time in which the watchdog would have had enough.
			late, cancel := context.WithTimeout(ctx, 2*patient)
			defer cancel()
			<-late.Done()
			if f := r.Queue(1 - r.ID()).Fault(); f != nil {
				return f
			}
			if err := g.round(ctx); err != nil {
				return err
			}
			return g.plan.Close(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
