//go:build cgo && linux

package hip

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "cuda_shim.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"unsafe"
)

// nvidiaPlatform is NVIDIA's driver and its devices.
type nvidiaPlatform struct {
	api         *C.cuda_api
	library     string
	version     int
	connections int
	devices     []*nvidiaDevice

	// calm is held for reading by who gives a device work, and for writing by
	// who makes a call that would wait for all of it.
	calm sync.RWMutex
}

// connectionSetting is read by the driver when it starts.
const connectionSetting = "CUDA_DEVICE_MAX_CONNECTIONS"

// openNVIDIA opens the driver's library.
func openNVIDIA() (Platform, error) {
	p := &nvidiaPlatform{library: cudaLibrary()}
	library := C.CString(p.library)
	defer C.free(unsafe.Pointer(library))
	var why [256]C.char
	var devices, version C.int
	p.api = C.cuda_open(library, &why[0], C.size_t(len(why)), &devices, &version)
	if p.api == nil {
		return nil, &LibraryError{Platform: "nvidia", Library: p.library, Setting: CUDASetting, Why: C.GoString(&why[0])}
	}
	p.version = int(version)
	p.connections = connections()
	for i := range int(devices) {
		p.devices = append(p.devices, &nvidiaDevice{platform: p, index: i})
	}
	return p, nil
}

// connections is how many the driver was given, as far as we know: the value
// that was set before it started.
func connections() int {
	name := C.CString(connectionSetting)
	defer C.free(unsafe.Pointer(name))
	n, err := strconv.Atoi(C.GoString(C.getenv(name)))
	if err != nil || n < 1 || n > 32 {
		return 8 // what the driver takes then
	}
	return n
}

func (p *nvidiaPlatform) Name() string { return "nvidia" }

func (p *nvidiaPlatform) Devices() int { return len(p.devices) }

func (p *nvidiaPlatform) Device(i int) (Device, error) {
	if i < 0 || i >= len(p.devices) {
		return nil, fmt.Errorf("hip: the nvidia platform has no device %d; it has %d, counted from 0", i, len(p.devices))
	}
	d := p.devices[i]
	d.opening.Do(d.open)
	if d.openErr != nil {
		return nil, d.openErr
	}
	return d, nil
}

func (p *nvidiaPlatform) Describe() string {
	from := "the loader's path"
	if os.Getenv(CUDASetting) != "" {
		from = CUDASetting
	}
	return fmt.Sprintf("nvidia: %s from %s, driver API %d.%d, %d devices, %d connections on each", p.library, from, p.version/1000, p.version%1000/10, len(p.devices), p.connections)
}

// calmly makes a call that would wait for everything the devices do, unless
// they do something.
func (p *nvidiaPlatform) calmly(op, device string, call func() error) error {
	p.calm.Lock()
	defer p.calm.Unlock()
	var by []string
	for _, d := range p.devices {
		by = append(by, d.busy()...)
	}
	if len(by) > 0 {
		return &BusyError{Op: op, Device: device, By: by}
	}
	return call()
}
