//go:build cgo

package rocm

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Place says which engine a queue is for.
type Place struct {
	Domain, Location uint32 // of its device on PCI
	GPU              uint32 // KFD's id of the device
	Engine           int
	XGMI             bool // the engine is one of those made for xGMI
}

// Queue is a user-mode SDMA queue.
type Queue struct {
	// Ring is the queue's ring; Read, Write and Doorbell are the addresses of
	// its words.
	Ring                  []byte
	Read, Write, Doorbell unsafe.Pointer
	// Made says how, for people.
	Made string

	l      *Libraries
	c      *C.rocm_queue
	device int
	memory []unsafe.Pointer // that is the queue's own
	end    sync.Once
	ended  error
}

// pageBytes is the allocation that holds a queue's pointers.
const pageBytes = 4096

// NewQueue makes a queue on a device with a ring of so many bytes: by
// hsa_amd_queue_create where the runtime has it, else by KFD's ioctl. When both
// refuse, the error wraps what each said.
func (l *Libraries) NewQueue(device int, at Place, bytes int64) (*Queue, error) {
	place := C.rocm_place{
		domain: C.uint32_t(at.Domain), location: C.uint32_t(at.Location), gpu: C.uint32_t(at.GPU), engine: C.uint32_t(at.Engine),
	}
	if at.XGMI {
		place.xgmi = 1
	}
	q := &Queue{l: l, device: device}
	byHSA := q.makeByHSA(place, bytes)
	if byHSA == nil {
		return q, nil
	}
	if err := q.makeByKFD(place, bytes); err != nil {
		q.free()
		return nil, fmt.Errorf("%w; %w", byHSA, err)
	}
	return q, nil
}

// errNoQueueCreate says that the runtime is older than ROCm 10.
var errNoQueueCreate = errors.New("the HSA runtime has no hsa_amd_queue_create")

func (q *Queue) makeByHSA(at C.rocm_place, bytes int64) error {
	if q.l.c.hsa.amd_queue_create == nil {
		return errNoQueueCreate
	}
	var call *C.char
	if status := C.rocm_hsa_queue(q.l.c, at, C.size_t(bytes), &q.c, &call); status != 0 {
		return q.l.hsa(C.GoString(call), q.device, status)
	}
	q.take("hsa_amd_queue_create")
	return nil
}

func (q *Queue) makeByKFD(at C.rocm_place, bytes int64) error {
	for _, n := range []int64{bytes, pageBytes} {
		p, err := q.l.HostMemory(q.device, n)
		if err != nil {
			return err
		}
		q.memory = append(q.memory, p)
	}
	clear(unsafe.Slice((*byte)(q.memory[1]), pageBytes))
	var call *C.char
	var kind C.uint32_t
	q.l.mu.Lock()
	errno := C.rocm_kfd_queue(q.l.c, at, q.memory[0], C.size_t(bytes), q.memory[1], &q.c, &kind, &call)
	q.l.mu.Unlock()
	if errno != 0 {
		return kfd(C.GoString(call), q.device, int(errno))
	}
	q.take(fmt.Sprintf("KFD queue type %d", int(kind)))
	return nil
}

func (q *Queue) take(made string) {
	q.Ring = unsafe.Slice((*byte)(q.c.ring), int(q.c.bytes))
	q.Read, q.Write, q.Doorbell = unsafe.Pointer(q.c.read), unsafe.Pointer(q.c.write), unsafe.Pointer(q.c.doorbell)
	q.Made = made
}

// Tell stores count in the doorbell, behind everything written before.
func (q *Queue) Tell(count uint64) { C.rocm_ring(q.c.doorbell, C.uint64_t(count)) }

// Err is what the runtime reports of the queue, an *Error, or nil.
func (q *Queue) Err() error {
	return q.l.hsa("the queue's error callback", q.device, C.rocm_queue_error(q.c))
}

// End destroys the queue and frees its memory. Nobody may use the queue any
// more. Ending twice has no effect.
func (q *Queue) End() error {
	q.end.Do(func() {
		byHSA := q.c.hsa != nil
		if code := C.rocm_end_queue(q.l.c, q.c); byHSA {
			q.ended = q.l.hsa("hsa_queue_destroy", q.device, code)
		} else {
			q.ended = kfd("AMDKFD_IOC_DESTROY_QUEUE", q.device, int(code))
		}
		q.free()
	})
	return q.ended
}

func (q *Queue) free() {
	for _, p := range q.memory {
		if err := q.l.FreeHostMemory(q.device, p); err != nil {
			q.ended = errors.Join(q.ended, err)
		}
	}
	q.memory = nil
}
