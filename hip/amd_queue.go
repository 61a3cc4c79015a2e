//go:build cgo && linux

package hip

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdQueue is the amd platform's part of an SDMAQueue.
type amdQueue struct {
	device *amdDevice
	engine choice
	queue  *rocm.Queue
	ending sync.Once
	ended  error
}

func newAMDQueue(d *amdDevice, c choice, q *rocm.Queue) *SDMAQueue {
	name := fmt.Sprintf("SDMA engine %d of %s", c.engine, d.Name())
	switch {
	case c.recommended:
		name += ", recommended for the link"
	case c.xgmi:
		name += ", for xGMI, in turn"
	default:
		name += ", in turn"
	}
	b := &amdQueue{device: d, engine: c, queue: q}
	sweep.cover(b.read())
	return &SDMAQueue{
		Ring: q.Ring, Read: (*Word)(q.Read), Write: (*Word)(q.Write),
		Engine:  fmt.Sprintf("%s (%s, %s)", name, d.generation.packets, q.Made),
		Largest: d.generation.largest, Window: d.generation.window,
		back: b,
	}
}

// read is the bytes of the word that the engine advances.
func (b *amdQueue) read() []byte { return unsafe.Slice((*byte)(b.queue.Read), 8) }

func (b *amdQueue) tell(count uint64) { b.queue.Tell(count) }

// load goes through the device where the host does not map the word.
func (b *amdQueue) load(addr uint64) (uint64, error) {
	if m, w, err := ResolveWord(addr); err == nil {
		defer m.Release()
		return w.Load(), nil
	}
	var word [8]byte
	err := b.device.port.read(addr, word[:])
	return binary.LittleEndian.Uint64(word[:]), err
}

func (b *amdQueue) err() error { return b.queue.Err() }

func (b *amdQueue) end() error {
	b.ending.Do(func() {
		sweep.uncover(b.read())
		b.ended = b.queue.End()
		b.device.engines.put(b.engine)
	})
	return b.ended
}
