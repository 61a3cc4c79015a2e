//go:build cgo

package rocm

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Every method that belongs to a device may be called from any goroutine. The
// errors are *Error.

// PCI is where a device sits on PCI: its domain, and bus<<8 | device<<3 |
// function.
func (l *Libraries) PCI(device int) (domain, location uint32, err error) {
	var id [64]C.char
	if err := l.hip("hipDeviceGetPCIBusId", device, C.rocm_pci(l.c, C.int(device), &id[0], C.int(len(id)))); err != nil {
		return 0, 0, err
	}
	text := C.GoString(&id[0])
	var bus, dev, function uint32
	if _, err := fmt.Sscanf(text, "%x:%x:%x.%x", &domain, &bus, &dev, &function); err != nil {
		return 0, 0, fmt.Errorf("hipDeviceGetPCIBusId on device %d gave %q, which is no PCI address", device, text)
	}
	return domain, bus<<8 | dev<<3 | function, nil
}

// CanReach reports whether a device can reach a peer's memory.
func (l *Libraries) CanReach(device, peer int) (bool, error) {
	var can C.int
	err := l.hip("hipDeviceCanAccessPeer", device, C.rocm_peer(l.c, C.int(device), C.int(peer), &can))
	return can != 0, err
}

// Reach lets a device reach a peer's memory; twice is once.
func (l *Libraries) Reach(device, peer int) error {
	return l.hip("hipDeviceEnablePeerAccess", device, C.rocm_enable_peer(l.c, C.int(device), C.int(peer)))
}

// Memory allocates fine-grained memory of a device. It is not cleared.
func (l *Libraries) Memory(device int, bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	err := l.hip("hipExtMallocWithFlags", device, C.rocm_device_memory(l.c, C.int(device), C.size_t(bytes), C.HIP_DEVICE_MALLOC_FINEGRAINED, &p))
	return p, err
}

// FreeMemory frees what Memory returned.
func (l *Libraries) FreeMemory(device int, p unsafe.Pointer) error {
	return l.hip("hipFree", device, C.rocm_free_device_memory(l.c, C.int(device), p))
}

// HostMemory allocates pinned, uncached host memory that every device reaches.
// A runtime that knows no uncached memory gives coherent memory.
func (l *Libraries) HostMemory(device int, bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	code := C.rocm_host_memory(l.c, C.int(device), C.size_t(bytes), C.HIP_HOST_MALLOC_MAPPED|C.HIP_HOST_MALLOC_UNCACHED, &p)
	if code != 0 && code != OutOfMemory {
		code = C.rocm_host_memory(l.c, C.int(device), C.size_t(bytes), C.HIP_HOST_MALLOC_MAPPED|C.HIP_HOST_MALLOC_COHERENT, &p)
	}
	return p, l.hip("hipHostMalloc", device, code)
}

// FreeHostMemory frees what HostMemory returned.
func (l *Libraries) FreeHostMemory(device int, p unsafe.Pointer) error {
	return l.hip("hipHostFree", device, C.rocm_free_host_memory(l.c, C.int(device), p))
}

// Stream is a stream of HIP.
type Stream struct{ p unsafe.Pointer }

// Event is an event of HIP.
type Event struct{ p unsafe.Pointer }

// Module is loaded code.
type Module struct{ p unsafe.Pointer }

// Function is a kernel of a module.
type Function struct{ p unsafe.Pointer }

// NewStream makes a stream that does not wait for the default one.
func (l *Libraries) NewStream(device int) (s Stream, err error) {
	err = l.hip("hipStreamCreateWithFlags", device, C.rocm_stream(l.c, C.int(device), &s.p))
	return s, err
}

// DestroyStream destroys a stream whose work has ended.
func (l *Libraries) DestroyStream(device int, s Stream) error {
	return l.hip("hipStreamDestroy", device, C.rocm_destroy_stream(l.c, C.int(device), s.p))
}

// StreamDone reports whether everything on the stream has ended; the error is
// what it ended with.
func (l *Libraries) StreamDone(device int, s Stream) (bool, error) {
	return l.done("hipStreamQuery", device, C.rocm_stream_done(l.c, C.int(device), s.p))
}

func (l *Libraries) done(call string, device int, code C.int) (bool, error) {
	if code == NotReady {
		return false, nil
	}
	return true, l.hip(call, device, code)
}

// NewEvent makes an event without a time.
func (l *Libraries) NewEvent(device int) (e Event, err error) {
	err = l.hip("hipEventCreateWithFlags", device, C.rocm_event(l.c, C.int(device), &e.p))
	return e, err
}

// DestroyEvent destroys an event.
func (l *Libraries) DestroyEvent(device int, e Event) error {
	return l.hip("hipEventDestroy", device, C.rocm_destroy_event(l.c, C.int(device), e.p))
}

// Record has the event happen behind what is on the stream.
func (l *Libraries) Record(device int, e Event, s Stream) error {
	return l.hip("hipEventRecord", device, C.rocm_record(l.c, C.int(device), e.p, s.p))
}

// EventDone reports whether the event has happened.
func (l *Libraries) EventDone(device int, e Event) (bool, error) {
	return l.done("hipEventQuery", device, C.rocm_event_done(l.c, C.int(device), e.p))
}

// CopyRows copies rows of width bytes behind what is on the stream; host
// memory is pinned.
func (l *Libraries) CopyRows(device int, dst uint64, dstPitch int64, src uint64, srcPitch, width, height int64, s Stream) error {
	return l.hip("hipMemcpy2DAsync", device, C.rocm_copy_rows(l.c, C.int(device), C.uint64_t(dst), C.size_t(dstPitch),
		C.uint64_t(src), C.size_t(srcPitch), C.size_t(width), C.size_t(height), s.p))
}

// Clear zeroes n bytes behind what is on the stream.
func (l *Libraries) Clear(device int, addr uint64, n int64, s Stream) error {
	return l.hip("hipMemsetAsync", device, C.rocm_set(l.c, C.int(device), C.uint64_t(addr), C.size_t(n), s.p))
}

// Load loads a code object.
func (l *Libraries) Load(device int, image []byte) (m Module, err error) {
	if len(image) == 0 {
		return m, &Error{API: HIP, Call: "hipModuleLoadData", Device: device, Code: 200, Name: "hipErrorInvalidImage"}
	}
	err = l.hip("hipModuleLoadData", device, C.rocm_module(l.c, C.int(device), unsafe.Pointer(&image[0]), &m.p))
	return m, err
}

// Unload unloads a module of which nothing runs.
func (l *Libraries) Unload(device int, m Module) error {
	return l.hip("hipModuleUnload", device, C.rocm_unload(l.c, C.int(device), m.p))
}

// Function finds a kernel by name.
func (l *Libraries) Function(device int, m Module, name string) (f Function, err error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	err = l.hip("hipModuleGetFunction "+name, device, C.rocm_function(l.c, C.int(device), m.p, n, &f.p))
	return f, err
}

// MostThreads is how many threads a CTA of the kernel may have.
func (l *Libraries) MostThreads(device int, f Function) (int, error) {
	var n C.int
	err := l.hip("hipFuncGetAttribute", device, C.rocm_most_threads(l.c, C.int(device), f.p, &n))
	return int(n), err
}

// Launch runs a kernel behind what is on the stream, with so many bytes of
// dynamic shared memory for each CTA. args is the arguments as the kernel has
// them in memory.
func (l *Libraries) Launch(device int, f Function, blocks, threads, shared int, s Stream, args []byte) error {
	var p unsafe.Pointer
	if len(args) > 0 {
		p = unsafe.Pointer(&args[0])
	}
	return l.hip("hipModuleLaunchKernel", device, C.rocm_launch(l.c, C.int(device), f.p, C.unsigned(blocks), C.unsigned(threads), C.unsigned(shared), s.p, p, C.size_t(len(args))))
}
