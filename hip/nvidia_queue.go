//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// nvidiaQueue is a stream of gated copies.
type nvidiaQueue struct {
	device *nvidiaDevice
	name   string
	passed deviceWord
	failed func(error)   // told when the stream has failed
	asked  atomic.Uint64 // the last position that was submitted

	stream C.cuda_handle

	mu     sync.Mutex
	closed bool
	given  bool // the stream is given back
}

// NewCopyStream implements CopyDevice.
func (d *nvidiaDevice) NewCopyStream(name string, failed func(error)) (CopyStream, error) {
	q := &nvidiaQueue{device: d, name: name, failed: failed}
	var err error
	if q.stream, err = d.takeStream("queue " + name); err != nil {
		return nil, err
	}
	q.passed = d.words.take(0)
	d.began(q)
	return q, nil
}

func (q *nvidiaQueue) busy() string {
	if q.idle() {
		return ""
	}
	return "queue " + q.name
}

func (q *nvidiaQueue) idle() bool { return q.passed.Load() >= q.asked.Load() }

// nvidiaChain is a chain in C's memory.
type nvidiaChain struct {
	steps             *C.cuda_step
	n                 int
	commands, batched int64
}

func (c *nvidiaChain) Commands() int64 { return c.commands }
func (c *nvidiaChain) Batched() int64  { return c.batched }

// batchCopies is how many copies one batch takes.
const batchCopies = 512

// Build implements CopyStream.
func (q *nvidiaQueue) Build(steps []CopyStep) (CopyChain, error) {
	lines, windows := 0, 0
	for _, s := range steps {
		lines += len(s.Lines)
		windows += len(s.Windows)
	}
	c := &nvidiaChain{n: len(steps), commands: 1}
	if len(steps) == 0 {
		return c, nil
	}
	c.steps = C.cuda_chain_new(C.size_t(len(steps)), C.size_t(lines), C.size_t(windows))
	if c.steps == nil {
		return nil, errors.New("hip: no memory for a chain")
	}
	runtime.AddCleanup(c, func(s *C.cuda_step) { C.cuda_chain_free(s) }, c.steps)
	out := unsafe.Slice(c.steps, len(steps))
	dst := unsafe.Slice(out[0].dst, lines)
	src := unsafe.Slice(out[0].src, lines)
	bytes := unsafe.Slice(out[0].bytes, lines)
	window := unsafe.Slice(out[0].window, windows)
	batches := C.cuda_has_batches(q.device.platform.api) != 0
	for i, s := range steps {
		o := &out[i]
		o.gate, o.signal = C.cuda_ptr(s.Gate), C.cuda_ptr(s.Signal)
		if s.Anywhere {
			o.anywhere = 1
		}
		o.copies, o.windows = C.size_t(len(s.Lines)), C.size_t(len(s.Windows))
		o.dst, o.src, o.bytes = unsafe.SliceData(dst), unsafe.SliceData(src), unsafe.SliceData(bytes)
		o.window = unsafe.SliceData(window)
		for j, l := range s.Lines {
			dst[j], src[j], bytes[j] = C.cuda_ptr(l.Dst), C.cuda_ptr(l.Src), C.size_t(l.Bytes)
		}
		for j, w := range s.Windows {
			window[j] = cudaWindow(w)
			c.batched += w.Slices
		}
		n := len(s.Lines)
		dst, src, bytes, window = dst[n:], src[n:], bytes[n:], window[len(s.Windows):]
		c.commands += s.commands(batches)
		c.batched += int64(n)
	}
	return c, nil
}

// commands is what the step takes on a stream.
func (s *CopyStep) commands(batches bool) int64 {
	n := int64(len(s.Lines))
	if batches {
		n = (n + batchCopies - 1) / batchCopies
	}
	n += int64(len(s.Windows))
	if s.Anywhere {
		n++ // its gate may be waited for twice
	}
	for _, word := range []uint64{s.Gate, s.Signal} {
		if word != 0 {
			n++
		}
	}
	return n
}

func cudaWindow(w CopyWindow) C.cuda_window {
	const unified = 4
	var c C.cuda_window
	for _, o := range []struct {
		to            *C.cuda_operand
		at            uint64
		pitch, height int64
	}{{&c.src, w.Src, w.SrcPitch, w.SrcHeight}, {&c.dst, w.Dst, w.DstPitch, w.DstHeight}} {
		o.to._type = unified
		o.to.device = C.cuda_ptr(o.at)
		o.to.pitch, o.to.height = C.size_t(o.pitch), C.size_t(o.height)
	}
	c.width, c.height, c.depth = C.size_t(w.Width), C.size_t(w.Rows), C.size_t(w.Slices)
	return c
}

// Submit implements CopyStream.
func (q *nvidiaQueue) Submit(c CopyChain, round uint32, position uint64) (int, error) {
	if err := q.device.sound(); err != nil {
		return 0, err
	}
	chain := c.(*nvidiaChain)
	q.device.platform.calm.RLock()
	defer q.device.platform.calm.RUnlock()
	before := q.asked.Swap(position)
	q.device.guard()
	var sent C.uint64_t
	r := C.cuda_submit(q.device.c, q.stream, chain.steps, C.size_t(chain.n), C.uint32_t(round), C.cuda_ptr(q.passed.addr), C.uint64_t(position), &sent)
	runtime.KeepAlive(chain)
	if r.code != 0 && sent == 0 {
		q.asked.Store(before)
	}
	return int(sent), q.device.checkFor("queue "+q.name, r)
}

func (q *nvidiaQueue) Passed() *Word { return q.passed.Word }

// Add implements CopyStream.
func (q *nvidiaQueue) Add(addr, v uint64) error {
	if m, w, err := ResolveWord(addr); err == nil {
		w.Add(v)
		m.Release()
		return nil
	}
	return q.device.add(addr, v)
}

// examine implements worker.
func (q *nvidiaQueue) examine() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.given {
		return
	}
	r := C.cuda_stream_query(q.device.c, q.stream, 1)
	if r.code == C.CUDA_NOT_READY {
		return
	}
	if err := q.device.checkFor("queue "+q.name, r); err != nil {
		q.failed(err)
	}
}

// Close implements CopyStream.
func (q *nvidiaQueue) Close() error {
	q.device.proving.RLock()
	defer q.device.proving.RUnlock()
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	if !q.reclaim() {
		return &StuckError{Device: q.device.Name(), What: "queue " + q.name, Err: context.Canceled}
	}
	return nil
}

// reclaim gives back the stream of a queue that is closed and has nothing left
// to do, and reports whether it is given back.
func (q *nvidiaQueue) reclaim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed || q.given || !q.idle() {
		return q.given
	}
	q.given = true
	q.device.putStream(q, q.stream)
	q.device.words.put(q.passed)
	return true
}
