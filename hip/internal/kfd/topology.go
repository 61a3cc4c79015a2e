package kfd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Topology is the GPUs of a machine.
type Topology []Node

// Dir is where a topology lies below the root of sysfs.
const Dir = "class/kfd/kfd/topology/nodes"

// Read reads the topology below root, which is /sys on a live machine. The
// error is a *ReadError.
func Read(root string) (Topology, error) {
	dir := filepath.Join(root, Dir)
	names, err := numbers(dir)
	if err != nil {
		return nil, &ReadError{Path: dir, Err: err}
	}
	var t Topology
	for _, id := range names {
		n, gpu, err := readNode(filepath.Join(dir, strconv.Itoa(id)))
		if err != nil {
			return nil, err
		}
		if gpu {
			n.ID = id
			t = append(t, n)
		}
	}
	return t, nil
}

// At returns the GPU at a PCI location, nil if there is none.
func (t Topology) At(domain, location uint32) *Node {
	for i := range t {
		if t[i].Domain == domain && t[i].Location == location {
			return &t[i]
		}
	}
	return nil
}

// The kernel's numbers for kinds of links and of memory.
const (
	linkXGMI   = 11 // HSA_IOLINKTYPE_XGMI
	heapPublic = 1  // HSA_MEM_HEAP_TYPE_FB_PUBLIC
)

// readNode reads one node; processors are none of ours.
func readNode(dir string) (n Node, gpu bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "gpu_id"))
	if err != nil {
		return n, false, &ReadError{Path: filepath.Join(dir, "gpu_id"), Err: err}
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return n, false, &ReadError{Path: filepath.Join(dir, "gpu_id"), Err: err}
	}
	if id == 0 {
		return n, false, nil
	}
	p, err := readProperties(filepath.Join(dir, "properties"))
	if err != nil {
		return n, false, err
	}
	n = Node{
		GPU: uint32(id), Domain: uint32(p["domain"]), Location: uint32(p["location_id"]),
		Device: uint32(p["device_id"]), Target: uint32(p["gfx_target_version"]),
		Engines: int(p["num_sdma_engines"]), XGMIEngines: int(p["num_sdma_xgmi_engines"]),
		QueuesPerEngine: int(p["num_sdma_queues_per_engine"]),
	}
	for _, kind := range []string{"io_links", "p2p_links"} {
		if err := each(filepath.Join(dir, kind), func(p map[string]uint64) {
			n.Links = append(n.Links, Link{To: int(p["node_to"]), XGMI: p["type"] == linkXGMI, Engines: p["recommended_sdma_engine_id_mask"]})
		}); err != nil {
			return n, false, err
		}
	}
	banks, public := 0, 0
	err = each(filepath.Join(dir, "mem_banks"), func(p map[string]uint64) {
		banks++
		if p["heap_type"] == heapPublic {
			public++
		}
	})
	n.HostVisible = banks > 0 && public == banks
	return n, true, err
}

// each reads the properties of every numbered folder in dir, which need not
// exist.
func each(dir string, do func(map[string]uint64)) error {
	names, err := numbers(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &ReadError{Path: dir, Err: err}
	}
	for _, i := range names {
		p, err := readProperties(filepath.Join(dir, strconv.Itoa(i), "properties"))
		if err != nil {
			return err
		}
		do(p)
	}
	return nil
}

// numbers are the numbered entries of a folder; others are not looked at.
func numbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ns []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			ns = append(ns, n)
		}
	}
	slices.Sort(ns)
	return ns, nil
}

// readProperties reads the lines that are a name and a number; a kernel may
// have others.
func readProperties(path string) (map[string]uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &ReadError{Path: path, Err: err}
	}
	p := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			if v, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				p[f[0]] = v
			}
		}
	}
	return p, nil
}

// ReadError says what of a topology could not be read.
type ReadError struct {
	Path string
	Err  error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("kfd: reading the GPUs' topology: %s: %v", e.Path, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }
