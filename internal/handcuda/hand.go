//go:build cgo && linux

package handcuda

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "hand.h"
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Copy is one copy of a chunk: rows of Width bytes, Pitch apart on both sides.
type Copy struct {
	Src, Dst           uint64
	Width, Rows, Pitch int
}

// Chunk is a chunk of a chain. Without a gate it is copied at once, without a
// signal nobody is told.
type Chunk struct {
	Gate, Signal uint64
	Copies       []Copy
}

// Stream is a stream of the driver's.
type Stream struct{ c *C.hand_stream }

// Start starts the driver and makes a context on the first device.
func Start(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if e := C.hand_start(name); e != 0 {
		return fmt.Errorf("handcuda: starting %s: %d", library, e)
	}
	return nil
}

// Open makes a stream on a device.
func Open(library string, device int) (*Stream, error) {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	s := &Stream{}
	if e := C.hand_open(name, C.int(device)); e != 0 {
		return nil, fmt.Errorf("handcuda: opening %s: %d", library, e)
	}
	if e := C.hand_stream_new(&s.c); e != 0 {
		return nil, fmt.Errorf("handcuda: making a stream: %d", e)
	}
	return s, nil
}

// Idle reports whether nothing is left to do on the stream.
func (s *Stream) Idle() (bool, error) {
	switch e := C.hand_idle(s.c); e {
	case 0:
		return true, nil
	case 600:
		return false, nil
	default:
		return false, fmt.Errorf("handcuda: the stream has failed: %d", e)
	}
}

// Chain is chunks in the form that Submit takes.
type Chain struct {
	n                  int
	gates, signals     []C.uint64_t
	counts             []C.size_t
	dst, src           []C.uint64_t
	width, rows, pitch []C.size_t
}

// NewChain makes a chain of chunks that have at least one copy each.
func NewChain(chunks []Chunk) *Chain {
	c := &Chain{n: len(chunks)}
	for _, ch := range chunks {
		c.gates = append(c.gates, C.uint64_t(ch.Gate))
		c.signals = append(c.signals, C.uint64_t(ch.Signal))
		c.counts = append(c.counts, C.size_t(len(ch.Copies)))
		for _, cp := range ch.Copies {
			c.dst = append(c.dst, C.uint64_t(cp.Dst))
			c.src = append(c.src, C.uint64_t(cp.Src))
			c.width = append(c.width, C.size_t(cp.Width))
			c.rows = append(c.rows, C.size_t(cp.Rows))
			c.pitch = append(c.pitch, C.size_t(cp.Pitch))
		}
	}
	return c
}

// Submit puts the chain on the stream for a round and says how long the calls
// took.
func (s *Stream) Submit(c *Chain, round uint32) (time.Duration, error) {
	var ns C.int64_t
	e := C.hand_chain(s.c, C.size_t(c.n), &c.gates[0], &c.signals[0], &c.counts[0],
		&c.dst[0], &c.src[0], &c.width[0], &c.rows[0], &c.pitch[0], C.uint32_t(round), &ns)
	if e != 0 {
		return 0, fmt.Errorf("handcuda: submitting: %d", e)
	}
	return time.Duration(ns), nil
}
