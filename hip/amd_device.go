//go:build cgo && linux

package hip

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/triggeredplans/sluice/hip/internal/kfd"
	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdDevice is one GPU, opened when it is first asked for.
type amdDevice struct {
	platform *amdPlatform
	rocm     *rocm.Libraries
	index    int
	opening  sync.Once
	openErr  error

	node       kfd.Node
	generation generation
	engines    *engines
	port       *amdPort

	mu      sync.Mutex
	modules map[[sha256.Size]byte]*amdModule
}

func (d *amdDevice) open() error {
	domain, location, err := d.rocm.PCI(d.index)
	if err != nil {
		return err
	}
	t, err := d.platform.topology()
	if err != nil {
		return fmt.Errorf("hip: %s: %w", d.Name(), err)
	}
	n := t.At(domain, location)
	if n == nil {
		return &TopologyError{
			Device: d.Name(), Location: fmt.Sprintf("%04x:%02x:%02x.%d", domain, location>>8, location>>3&31, location&7),
			Dir: filepath.Join(d.platform.sysfs, kfd.Dir), Setting: SysfsSetting,
		}
	}
	d.node = *n
	if d.generation, err = generationOf(d.Name(), n.Arch()); err != nil {
		return err
	}
	d.engines = newEngines(d.Name(), &d.node)
	d.modules = map[[sha256.Size]byte]*amdModule{}
	d.port, err = d.newPort()
	return err
}

func (d *amdDevice) Name() string { return fmt.Sprintf("amd:%d", d.index) }

func (d *amdDevice) Properties() Properties {
	return Properties{Arch: d.node.Arch(), LargestCopy: d.generation.largest, Modules: true, Memories: []MemoryKind{DeviceMemory}}
}

// Alloc returns fine-grained memory of the device. The host uses it in place
// where it can map all of it.
func (d *amdDevice) Alloc(n int64) (*Memory, error) {
	p, err := d.get(n, d.rocm.Memory)
	if err != nil {
		return nil, err
	}
	back := func() { _ = d.rocm.FreeMemory(d.index, p) } // which HIP gave
	m := newFarMemory(uint64(uintptr(p)), n, d.port, back)
	if d.node.HostVisible {
		m = mapAMD(p, n, back)
	}
	if err := d.port.clear(m.Addr(), n); err != nil {
		m.Free()
		return nil, &MemoryError{d.Name(), n, err}
	}
	return m, nil
}

// AllocHost returns pinned, uncached memory of the host.
func (d *amdDevice) AllocHost(n int64) (*Memory, error) {
	p, err := d.get(n, d.rocm.HostMemory)
	if err != nil {
		return nil, err
	}
	m := mapAMD(p, n, func() { _ = d.rocm.FreeHostMemory(d.index, p) }) // which HIP gave
	return m, m.Clear(0, n)
}

func (d *amdDevice) get(n int64, from func(device int, n int64) (unsafe.Pointer, error)) (unsafe.Pointer, error) {
	if n <= 0 || n > maxHostBytes {
		return nil, &MemoryError{d.Name(), n, errors.New("one allocation has 1 byte to 1 TiB")}
	}
	p, err := from(d.index, n)
	if err != nil {
		return nil, &MemoryError{d.Name(), n, err}
	}
	return p, nil
}

// mapAMD is memory at p that the host uses in place, and devices write.
func mapAMD(p unsafe.Pointer, n int64, back func()) *Memory {
	bytes := unsafe.Slice((*byte)(p), n)
	sweep.cover(bytes)
	return newMemory(bytes, func() {
		sweep.uncover(bytes)
		back()
	})
}

// Prove has nothing to show: SDMA queues are no streams, and no kernel waits
// for what is on them.
func (d *amdDevice) Prove(context.Context, *Function) error { return nil }

// reach lets the device use the memory of another.
func (d *amdDevice) reach(o *amdDevice) error {
	if d == o {
		return nil
	}
	can, err := d.rocm.CanReach(d.index, o.index)
	if err == nil && can {
		err = d.rocm.Reach(d.index, o.index)
	}
	if err != nil || !can {
		return &PeerError{Device: d.Name(), Peer: o.Name(), Err: err}
	}
	return nil
}

// NewSDMAQueue implements SDMADevice.
func (d *amdDevice) NewSDMAQueue(peer int, bytes int64) (*SDMAQueue, error) {
	other, err := d.platform.Device(peer)
	if err != nil {
		return nil, err
	}
	o := other.(*amdDevice)
	if err := d.reach(o); err != nil {
		return nil, err
	}
	c, err := d.engines.take(o.Name(), &o.node)
	if err != nil {
		return nil, err
	}
	q, err := d.rocm.NewQueue(d.index, rocm.Place{
		Domain: d.node.Domain, Location: d.node.Location, GPU: d.node.GPU, Engine: c.engine, XGMI: c.xgmi,
	}, bytes)
	if err != nil {
		d.engines.put(c)
		return nil, fmt.Errorf("hip: a queue on SDMA engine %d of %s for copies to %s: %w", c.engine, d.Name(), o.Name(), err)
	}
	return newAMDQueue(d, c, q), nil
}
