//go:build cgo && linux

package hip

// #include <stdlib.h>
// #include "cuda_shim.h"
import "C"

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"unsafe"
)

// nvidiaModule is a module that a device has loaded.
type nvidiaModule struct {
	device *nvidiaDevice
	key    [sha256.Size]byte
	c      C.cuda_handle
	users  int // under the device's lock
	// parameters are the sizes that the module itself tells, by kernel.
	parameters map[string][]byte

	mu        sync.Mutex
	functions map[string]*Function
}

func (m *nvidiaModule) load(image []byte) error {
	d := m.device
	in := C.CBytes(append(image[:len(image):len(image)], 0)) // PTX is a string
	defer C.free(in)
	var log [4096]C.char
	if err := d.check(C.cuda_module_load(d.c, in, &log[0], C.size_t(len(log)), &m.c)); err != nil {
		return &ModuleError{Device: d.Name(), Arch: d.arch, Log: C.GoString(&log[0]), Err: err}
	}
	m.parameters = ptxParameters(image)
	return nil
}

// nvidiaFunction is a kernel that a device has loaded.
type nvidiaFunction struct {
	device  *nvidiaDevice
	c       C.cuda_handle
	threads int // most that a CTA may have
	sizes   []byte
	known   bool // sizes are those of the arguments

	mu     sync.Mutex
	shared int         // bytes of dynamic shared memory that a CTA has
	fit    map[int]int // CTAs that the device runs at once, by their threads
}

// mostParameters is more than a kernel has: they take 32 KiB at most.
const mostParameters = 4096

// Function implements Module. The first call for a name is a *BusyError while
// the device works, since loading the kernel's code waits for it.
func (m *nvidiaModule) Function(name string) (*Function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[name]; f != nil {
		return f, nil
	}
	d := m.device
	f := &nvidiaFunction{device: d, fit: map[int]int{}}
	err := d.platform.calmly("loading kernel "+name, d.Name(), func() error {
		c := C.CString(name)
		defer C.free(unsafe.Pointer(c))
		var threads C.int
		if err := d.checkFor("kernel "+name, C.cuda_function(d.c, m.c, c, &f.c, &threads)); err != nil {
			return err
		}
		f.threads = int(threads)
		if f.sizes, f.known = m.parameters[name]; f.known {
			return nil
		}
		// The driver tells how many there are by an error behind the last.
		sizes := make([]byte, mostParameters)
		if n := C.cuda_parameters(d.c, f.c, (*C.uchar)(&sizes[0]), mostParameters); n >= 0 {
			f.sizes, f.known = sizes[:n:n], true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.functions[name] = &Function{Name: name, code: f}
	return m.functions[name], nil
}

// Unload implements Module.
func (m *nvidiaModule) Unload() error {
	d := m.device
	d.mu.Lock()
	last := m.users == 1
	if m.users > 1 {
		m.users--
	}
	d.mu.Unlock()
	if !last {
		return nil
	}
	return d.platform.calmly("unloading a module", d.Name(), func() error {
		d.mu.Lock()
		if m.users--; m.users == 0 {
			delete(d.modules, m.key)
		}
		gone := m.users == 0
		d.mu.Unlock()
		if !gone {
			return nil
		}
		return d.check(C.cuda_module_unload(d.c, m.c))
	})
}

// fits is how many CTAs of so many threads the device runs at once.
func (f *nvidiaFunction) fits(threads int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.fit[threads]; ok {
		return n, nil
	}
	var blocks C.int
	if err := f.device.check(C.cuda_occupancy(f.device.c, f.c, C.int(threads), C.int(f.shared), &blocks)); err != nil {
		return 0, err
	}
	f.fit[threads] = int(blocks) * f.device.units
	return f.fit[threads], nil
}

// share implements sharer.
func (f *nvidiaFunction) share(bytes int) error {
	d := f.device
	return d.platform.calmly("giving a kernel shared memory", d.Name(), func() error {
		if err := d.check(C.cuda_share(d.c, f.c, C.int(bytes))); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.shared = bytes
		clear(f.fit)
		return nil
	})
}

// dynamic is how many bytes of dynamic shared memory a CTA has.
func (f *nvidiaFunction) dynamic() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shared
}

// checkArgs compares arguments with the kernel's parameters, where the driver
// tells them: it does not compare them itself.
func (f *nvidiaFunction) checkArgs(args []Arg) string {
	if !f.known {
		return ""
	}
	if len(args) != len(f.sizes) {
		return fmt.Sprintf("it takes %d arguments, and was given %d", len(f.sizes), len(args))
	}
	for i, a := range args {
		if int(f.sizes[i]) != a.Size {
			return fmt.Sprintf("its argument %d has %d bytes, and was given %d", i, f.sizes[i], a.Size)
		}
	}
	return ""
}
