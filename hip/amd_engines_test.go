package hip

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"testing"

	"github.com/triggeredplans/sluice/hip/internal/kfd"
)

// machine is a topology of testdata, with the engines of each of its GPUs.
func machine(t *testing.T, gpus int) (kfd.Topology, []*engines) {
	t.Helper()
	top, err := kfd.Read(filepath.Join("testdata", "kfd", fmt.Sprintf("%dgpu", gpus)))
	if err != nil {
		t.Fatal(err)
	}
	var all []*engines
	for i := range top {
		all = append(all, newEngines(fmt.Sprint(i), &top[i]))
	}
	return top, all
}

func TestAQueueIsOnTheEngineThatTheDriverRecommends(t *testing.T) {
	for _, gpus := range []int{2, 8} {
		top, all := machine(t, gpus)
		for i, e := range all {
			for j := range top {
				if i == j {
					continue
				}
				link, _ := top[i].Link(top[j].ID)
				c, err := e.take("peer", &top[j])
				if err != nil || c.engine != bits.TrailingZeros64(link.Engines) || !c.recommended || !c.xgmi {
					t.Errorf("%d GPUs, %d to %d: %+v, %v; the mask is %#x", gpus, i, j, c, err, link.Engines)
				}
			}
		}
	}
}

func TestWithoutARecommendationXGMIEnginesComeInTurnAndOnlyThoseThatAreThere(t *testing.T) {
	top, all := machine(t, 4) // of a part whose odd engines are fused off
	used := map[int]int{}
	for k := range 14 {
		c, err := all[0].take("peer", &top[1+k%3])
		if err != nil {
			t.Fatal(err)
		}
		if c.engine%2 != 0 || !c.xgmi || c.recommended {
			t.Errorf("queue %d is on engine %d: %+v", k, c.engine, c)
		}
		used[c.engine]++
	}
	if len(used) != 7 || used[2] != 2 || used[14] != 2 {
		t.Errorf("14 queues are on the engines %v, want 2 on each of 7", used)
	}
}

func TestAnEngineCarriesEightQueuesAndThenTheNextOneTakesOver(t *testing.T) {
	top, all := machine(t, 2)
	e, peer := all[0], &top[1]
	on := map[int]int{}
	var taken []choice
	for {
		c, err := e.take("amd:1", peer)
		if err != nil {
			var full *EngineLimitError
			if !errors.As(err, &full) || full.Engines != 16 || full.Limit != 8 || full.Peer != "amd:1" {
				t.Fatalf("got %v", err)
			}
			break
		}
		on[c.engine]++
		taken = append(taken, c)
		if want := len(taken) <= 8; c.recommended != want {
			t.Errorf("queue %d: %+v", len(taken), c)
		}
		if want := len(taken) <= 14*8; c.xgmi != want {
			t.Errorf("queue %d: %+v", len(taken), c)
		}
	}
	if len(taken) != 16*8 {
		t.Errorf("%d queues, want 8 on each of 16 engines: %v", len(taken), on)
	}
	for engine, n := range on {
		if n != 8 {
			t.Errorf("%d queues on engine %d", n, engine)
		}
	}
	e.put(taken[20])
	if c, err := e.take("amd:1", peer); err != nil || c.engine != taken[20].engine {
		t.Errorf("the place that was given back is not taken again: %+v, %v", c, err)
	}
}

func TestCopiesWithinADeviceTakeOrdinaryEngines(t *testing.T) {
	top, all := machine(t, 8)
	for k := range 4 {
		c, err := all[3].take("itself", &top[3])
		if err != nil || c.xgmi || c.engine != k%2 {
			t.Errorf("queue %d: %+v, %v", k, c, err)
		}
	}
}

func TestAGenerationSaysHowLargeOneCopyMayBe(t *testing.T) {
	for arch, want := range map[string]int64{"gfx90a": 1 << 30, "gfx942": 1 << 30, "gfx950": 128 << 20} {
		g, err := generationOf("amd:0", arch)
		if err != nil || g.largest != want || g.window != 1<<32 || g.packets == "" {
			t.Errorf("%s: %+v, %v", arch, g, err)
		}
	}
	_, err := generationOf("amd:3", "gfx1100")
	var e *GenerationError
	if !errors.As(err, &e) || e.Device != "amd:3" || e.Arch != "gfx1100" || len(e.Known) != len(generations) {
		t.Errorf("got %v", err)
	}
}
