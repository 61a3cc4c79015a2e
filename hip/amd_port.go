//go:build cgo && linux

package hip

import (
	"context"
	"sync"
	"time"
	"unsafe"

	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdPort carries bytes between Go memory and memory that the host cannot map,
// on a stream of its own through a pinned buffer, and clears memory of either
// kind. Nothing waits for a gate on its stream.
type amdPort struct {
	device *amdDevice

	mu     sync.Mutex
	stream rocm.Stream
	buffer []byte
	addr   uint64 // of the buffer
	broken error  // a copy did not end; its buffer is not used again
}

const amdPortBytes = 1 << 20

// amdPatience is how long a copy through a port may take, which waits for
// nothing but other copies.
const amdPatience = 10 * time.Second

func (d *amdDevice) newPort() (*amdPort, error) {
	p := &amdPort{device: d}
	var err error
	if p.stream, err = d.rocm.NewStream(d.index); err != nil {
		return nil, err
	}
	at, err := d.rocm.HostMemory(d.index, amdPortBytes)
	if err != nil {
		return nil, err
	}
	p.buffer, p.addr = unsafe.Slice((*byte)(at), amdPortBytes), uint64(uintptr(at))
	return p, nil
}

func (p *amdPort) read(addr uint64, dst []byte) error {
	for len(dst) > 0 {
		n := min(len(dst), len(p.buffer))
		err := p.locked(func() error {
			if err := p.copy(p.addr, int64(n), addr, int64(n), int64(n), 1); err != nil {
				return err
			}
			copy(dst, p.buffer[:n])
			return nil
		})
		if err != nil {
			return err
		}
		dst, addr = dst[n:], addr+uint64(n)
	}
	return nil
}

func (p *amdPort) write(addr uint64, pitch, width int64, src []byte) error {
	for len(src) > 0 {
		// Whole rows, as many as have room, or a piece of one row.
		rows := max(min(int64(len(src)), amdPortBytes)/width, 1)
		n := min(rows*width, amdPortBytes, int64(len(src)))
		row := min(width, n)
		err := p.locked(func() error {
			copy(p.buffer, src[:n])
			return p.copy(addr, pitch, p.addr, row, row, rows)
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

func (p *amdPort) clear(addr uint64, n int64) error {
	return p.locked(func() error {
		if err := p.device.rocm.Clear(p.device.index, addr, n, p.stream); err != nil {
			return err
		}
		return p.await()
	})
}

func (p *amdPort) locked(do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	return do()
}

// copy copies rows and waits until they are there.
func (p *amdPort) copy(dst uint64, dstPitch int64, src uint64, srcPitch, width, rows int64) error {
	if err := p.device.rocm.CopyRows(p.device.index, dst, dstPitch, src, srcPitch, width, rows, p.stream); err != nil {
		return err
	}
	return p.await()
}

// await asks until the stream has nothing left to do.
func (p *amdPort) await() error {
	var between pause
	until := time.Now().Add(amdPatience)
	for {
		done, err := p.device.rocm.StreamDone(p.device.index, p.stream)
		if done {
			return err
		}
		if time.Now().After(until) {
			p.broken = &StuckError{Device: p.device.Name(), What: "a copy between host and device", Err: context.DeadlineExceeded}
			return p.broken
		}
		between.wait()
	}
}
