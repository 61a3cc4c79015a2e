package kfd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func read(t *testing.T, gpus int) Topology {
	t.Helper()
	top, err := Read(filepath.Join("..", "..", "testdata", "kfd", fmt.Sprintf("%dgpu", gpus)))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestATopologyHasEveryGPUAndNoProcessor(t *testing.T) {
	for _, c := range []struct {
		gpus   int
		device uint32
		nodes  []int // the node of each GPU, in the order of their PCI locations
	}{
		{2, 0x74a1, []int{1, 2}},
		{4, 0x74a2, []int{2, 4, 1, 3}},
		{8, 0x74a1, []int{2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		top := read(t, c.gpus)
		if len(top) != c.gpus {
			t.Fatalf("%d GPUs, want %d", len(top), c.gpus)
		}
		for i, node := range c.nodes {
			n := top.At(0, 0x1100*uint32(i+1))
			if n == nil || n.ID != node || n.GPU != uint32(50007+7*i) || n.Device != c.device {
				t.Errorf("of %d GPUs, number %d is %+v, want node %d", c.gpus, i, n, node)
				continue
			}
			if n.Arch() != "gfx942" || n.Engines != 2 || n.XGMIEngines != 14 || n.QueuesPerEngine != 8 || !n.HostVisible {
				t.Errorf("of %d GPUs, number %d has the properties %+v", c.gpus, i, n)
			}
		}
		if top.At(0, 0x1108) != nil || top.At(1, 0x1100) != nil {
			t.Error("there is a GPU at a location where none is")
		}
	}
}

func TestEveryPairOfGPUsHasAnXGMILinkWithItsRecommendation(t *testing.T) {
	for gpus, recommended := range map[int]bool{2: true, 4: false, 8: true} {
		top := read(t, gpus)
		for _, from := range top {
			seen := map[uint64]bool{}
			for _, to := range top {
				l, ok := from.Link(to.ID)
				if ok != (from.ID != to.ID) {
					t.Fatalf("of %d GPUs: link from node %d to %d: %v", gpus, from.ID, to.ID, ok)
				}
				if !ok {
					continue
				}
				if !l.XGMI || (l.Engines != 0) != recommended {
					t.Errorf("of %d GPUs: link from node %d to %d is %+v", gpus, from.ID, to.ID, l)
				}
				if recommended && (seen[l.Engines] || l.Engines&(l.Engines-1) != 0 || l.Engines < 1<<2) {
					t.Errorf("of %d GPUs: node %d to %d recommends engines %#x, which is not one xGMI engine of its own", gpus, from.ID, to.ID, l.Engines)
				}
				seen[l.Engines] = true
			}
		}
	}
}

func TestAnArchitectureIsNamedByItsTargetVersion(t *testing.T) {
	for target, want := range map[uint32]string{90010: "gfx90a", 90402: "gfx942", 90500: "gfx950", 90006: "gfx906", 110001: "gfx1101"} {
		if got := (&Node{Target: target}).Arch(); got != want {
			t.Errorf("%d is %s, want %s", target, got, want)
		}
	}
}

// tree writes files into a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestADirectXGMILinkIsPreferredToOneOverPCIe(t *testing.T) {
	top, err := Read(tree(t, map[string]string{
		"7/gpu_id":                 "9\n",
		"7/properties":             "gfx_target_version 90010\n",
		"7/p2p_links/0/properties": "type 2\nnode_to 8\n",
		"7/io_links/0/properties":  "type 2\nnode_to 8\n",
		"7/io_links/1/properties":  "type 11\nnode_to 8\nrecommended_sdma_engine_id_mask 4\n",
		"7/p2p_links/1/properties": "type 2\nnode_to 9\n",
		"7/mem_banks/0/properties": "heap_type 2\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	n := top[0]
	if l, ok := n.Link(8); !ok || !l.XGMI || l.Engines != 4 {
		t.Errorf("the link to node 8 is %+v", l)
	}
	if l, ok := n.Link(9); !ok || l.XGMI || l.Engines != 0 {
		t.Errorf("the link to node 9 is %+v", l)
	}
	if n.HostVisible {
		t.Error("memory of a private heap counts as visible to the host")
	}
}

func TestNodesComeInTheOrderOfTheirNumbers(t *testing.T) {
	files := map[string]string{}
	for _, n := range []string{"2", "10", "1"} {
		files[n+"/gpu_id"] = n + "00\n"
		files[n+"/properties"] = "gfx_target_version 90402\nname of something 4\n\n"
	}
	top, err := Read(tree(t, files))
	if err != nil || len(top) != 3 || top[0].ID != 1 || top[1].ID != 2 || top[2].ID != 10 {
		t.Errorf("got %+v, %v", top, err)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		root, path string
	}{
		"no topology":   {t.TempDir(), Dir},
		"no gpu_id":     {tree(t, map[string]string{"0/properties": ""}), "0/gpu_id"},
		"no number":     {tree(t, map[string]string{"0/gpu_id": "gpu\n"}), "0/gpu_id"},
		"no properties": {tree(t, map[string]string{"0/gpu_id": "3\n"}), "0/properties"},
		"an empty link": {tree(t, map[string]string{"0/gpu_id": "3\n", "0/properties": "", "0/io_links/0/x": ""}), "0/io_links/0/properties"},
	} {
		_, err := Read(c.root)
		var e *ReadError
		if !errors.As(err, &e) || filepath.Base(e.Path) != filepath.Base(c.path) {
			t.Errorf("%s: got %v, want a *ReadError of %s", name, err, c.path)
		}
		if name != "no number" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v does not say that it is not there", name, err)
		}
	}
}
