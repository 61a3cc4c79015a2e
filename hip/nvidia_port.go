//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// port carries bytes between Go memory and a device's, on a stream of its own
// that never waits for a gate, through a pinned buffer. It uses copy engines
// only, so it works while kernels fill the device.
type port struct {
	device *nvidiaDevice

	mu     sync.Mutex
	stream C.cuda_handle
	buffer *slab
	broken error // a copy did not end; its buffer is not used again
}

const (
	controlBytes = 64 << 10
	bulkBytes    = 4 << 20
)

// portPatience is how long a copy through a port may take. It waits for nothing
// but other copies.
const portPatience = 10 * time.Second

func (d *nvidiaDevice) newPort(bytes int64) (*port, error) {
	p := &port{device: d}
	var err error
	if p.stream, err = d.makeStream(); err != nil {
		return nil, err
	}
	p.buffer, err = d.pin(bytes)
	return p, err
}

// portFor is the port for so many bytes: words are not kept waiting by tensors.
func (d *nvidiaDevice) portFor(n int64) *port {
	if n <= controlBytes {
		return d.control
	}
	return d.bulk
}

func (d *nvidiaDevice) read(addr uint64, dst []byte) error {
	p := d.portFor(int64(len(dst)))
	for len(dst) > 0 {
		n := min(int64(len(dst)), p.buffer.size)
		err := p.locked(func() error {
			if err := p.copy(p.buffer.addr, n, addr, n, n, 1); err != nil {
				return err
			}
			pieces(p.buffer.bytes[:n], func(b []byte) {
				copy(dst, b)
				dst = dst[len(b):]
			})
			return nil
		})
		if err != nil {
			return err
		}
		addr += uint64(n)
	}
	return nil
}

func (d *nvidiaDevice) write(addr uint64, pitch, width int64, src []byte) error {
	p := d.portFor(int64(len(src)))
	for len(src) > 0 {
		// Whole rows, as many as have room, or a piece of one row.
		rows := max(min(int64(len(src)), p.buffer.size)/width, 1)
		n := min(rows*width, p.buffer.size, int64(len(src)))
		row := min(width, n)
		err := p.locked(func() error {
			at := p.buffer.bytes
			pieces(src[:n], func(b []byte) { at = at[copy(at, b):] })
			return p.copy(addr, pitch, p.buffer.addr, row, row, rows)
		})
		if err != nil {
			return err
		}
		src = src[n:]
		if row < width {
			addr, width = addr+uint64(row), width-row // the rest of the one row
		} else {
			addr += uint64(rows * pitch)
		}
	}
	return nil
}

func (d *nvidiaDevice) clear(addr uint64, n int64) error {
	p := d.portFor(n)
	return p.locked(func() error {
		clear(p.buffer.bytes[:min(n, p.buffer.size)])
		for n > 0 {
			m := min(n, p.buffer.size)
			if err := p.copy(addr, m, p.buffer.addr, m, m, 1); err != nil {
				return err
			}
			addr, n = addr+uint64(m), n-m
		}
		return nil
	})
}

// add adds to a word of any device's memory.
func (d *nvidiaDevice) add(addr, v uint64) error {
	p := d.control
	return p.locked(func() error {
		if err := p.copy(p.buffer.addr, 8, addr, 8, 8, 1); err != nil {
			return err
		}
		word := p.buffer.bytes[:8]
		binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)+v)
		return p.copy(addr, 8, p.buffer.addr, 8, 8, 1)
	})
}

// writeWord has the device itself write 32 bits.
func (p *port) writeWord(addr uint64, v uint32) error {
	return p.locked(func() error {
		if err := p.device.check(C.cuda_write(p.device.c, p.stream, C.cuda_ptr(addr), C.uint32_t(v))); err != nil {
			return err
		}
		return p.await()
	})
}

func (p *port) locked(do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	return do()
}

// copy copies rows and waits until they are there.
func (p *port) copy(dst uint64, dstPitch int64, src uint64, srcPitch, width, rows int64) error {
	err := p.device.check(C.cuda_copy(p.device.c, p.stream, C.cuda_ptr(dst), C.size_t(dstPitch), C.cuda_ptr(src), C.size_t(srcPitch), C.size_t(width), C.size_t(rows)))
	if err != nil {
		return err
	}
	return p.await()
}

// queryLooks is how often one call asks the driver whether a stream is done:
// some 10 µs, which a small copy takes.
const queryLooks = 16

// await asks until the stream has nothing left to do.
func (p *port) await() error {
	var between pause
	until := time.Now().Add(portPatience)
	for {
		r := C.cuda_stream_query(p.device.c, p.stream, queryLooks)
		if r.code != C.CUDA_NOT_READY {
			return p.device.check(r)
		}
		if time.Now().After(until) {
			p.broken = &StuckError{Device: p.device.Name(), What: "a copy between host and device", Err: context.DeadlineExceeded}
			return p.broken
		}
		between.wait()
	}
}
