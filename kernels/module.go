package kernels

import (
	"github.com/triggeredplans/sluice/hip"
)

// Module is kernels that a device has loaded from what a compiler made.
type Module struct {
	hip hip.Module
}

// Load loads a module onto a device: PTX, a cubin or a fatbin on NVIDIA's, a
// code object on AMD's. Load it before plans are made: while the device works
// the error is a *hip.BusyError. It is a *FormatError if the bytes are none of
// these, hip.ErrNoModules on the host, or else what the driver says.
func Load(dev hip.Device, image []byte) (*Module, error) {
	if _, err := FormatOf(image); err != nil {
		return nil, err
	}
	m, err := dev.Load(image)
	if err != nil {
		return nil, err
	}
	return &Module{m}, nil
}

// Kernel is the module's kernel of that name, which runs on the device that has
// loaded the module.
func (m *Module) Kernel(name string) (*Kernel, error) {
	f, err := m.hip.Function(name)
	if err != nil {
		return nil, err
	}
	return &Kernel{Name: name, Loaded: f}, nil
}

// Unload gives the module back. Its kernels must not be launched any more.
func (m *Module) Unload() error { return m.hip.Unload() }

// deviceKernels are the kernels of the built-in images.
var deviceKernels = []string{"fill", "tiled", "consumer", "script", "matmul", "progress", "evaluate"}

// LoadBuiltin loads the built-in kernels onto a device and returns them by name.
// All of their code is on the device then.
func LoadBuiltin(dev hip.Device) (map[string]*hip.Function, error) {
	image, err := BuiltinImage(dev.Properties().Arch)
	if err != nil {
		return nil, err
	}
	m, err := Load(dev, image.Bytes)
	if err != nil {
		return nil, err
	}
	all := map[string]*hip.Function{}
	for _, name := range deviceKernels {
		if all[name], err = m.hip.Function(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}
