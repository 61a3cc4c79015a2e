//go:build cgo && linux

package hip

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdModule is a code object that a device has loaded.
type amdModule struct {
	device *amdDevice
	key    [sha256.Size]byte
	users  int // under the device's lock
	rocm   rocm.Module

	mu        sync.Mutex
	functions map[string]*Function
}

// amdFunction is a kernel that a device has loaded.
type amdFunction struct {
	device  *amdDevice
	rocm    rocm.Function
	threads int          // most that a CTA may have
	shared  atomic.Int64 // bytes of dynamic shared memory that a CTA has
}

// share implements sharer. The driver compares the size with the device's when
// the kernel is launched.
func (f *amdFunction) share(bytes int) error {
	f.shared.Store(int64(bytes))
	return nil
}

// Load implements Device.
func (d *amdDevice) Load(image []byte) (Module, error) {
	key := sha256.Sum256(image)
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.modules[key]; m != nil {
		m.users++
		return m, nil
	}
	m := &amdModule{device: d, key: key, users: 1, functions: map[string]*Function{}}
	var err error
	if m.rocm, err = d.rocm.Load(d.index, image); err != nil {
		return nil, fmt.Errorf("hip: %s (%s) cannot load the module: %w", d.Name(), d.node.Arch(), err)
	}
	d.modules[key] = m
	return m, nil
}

// Function implements Module.
func (m *amdModule) Function(name string) (*Function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	d := m.device
	f, err := d.rocm.Function(d.index, m.rocm, name)
	if err != nil {
		return nil, err
	}
	threads, err := d.rocm.MostThreads(d.index, f)
	if err != nil {
		return nil, err
	}
	m.functions[name] = &Function{Name: name, code: &amdFunction{device: d, rocm: f, threads: threads}}
	return m.functions[name], nil
}

// Unload implements Module.
func (m *amdModule) Unload() error {
	d := m.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	delete(d.modules, m.key)
	return d.rocm.Unload(d.index, m.rocm)
}
