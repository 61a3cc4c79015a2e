//go:build cgo && linux

package hip

// #include <stdlib.h>
// #include "cuda_shim.h"
import "C"

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// nvidiaDevice is one GPU, opened when it is first asked for. What it needs
// later it has from then on: streams, words that it writes, buffers through
// which its memory is reached.
type nvidiaDevice struct {
	platform *nvidiaPlatform
	index    int
	opening  sync.Once
	openErr  error

	c     *C.cuda_device
	model string
	arch  string
	units int // multiprocessors

	words   *wordPage
	control *port // words and gates
	bulk    *port // everything else
	own     slabs
	pinned  slabs
	lost    atomic.Pointer[CUDAError] // after it nothing works any more
	guarded atomic.Bool

	// proving is held by who has all idle streams do something, and for reading
	// by who gives one back.
	proving sync.RWMutex

	linking sync.Mutex
	peers   map[int]error // access to other devices' memory, once it was asked for

	mu      sync.Mutex
	free    []C.cuda_handle // streams that nobody uses
	streams int             // in all, without those of the ports
	running map[worker]struct{}
	modules map[[sha256.Size]byte]*nvidiaModule
	waiting map[*nvidiaStream]hold
}

// worker is a stream in use.
type worker interface {
	// busy says what the stream has not done yet, "" if nothing.
	busy() string
	// examine asks the driver whether it is sound.
	examine()
}

// reservedStreams are those of the ports.
const reservedStreams = 2

// The driver's numbers of attributes.
const (
	attributeMultiprocessors = 16
	attributeUnified         = 41
	attributeMajor           = 75
	attributeMinor           = 76
)

// leastSlab is how much memory a device is asked for at a time.
const leastSlab = 64 << 20

func (d *nvidiaDevice) open() {
	d.openErr = d.platform.calmly("opening", d.Name(), d.start)
}

func (d *nvidiaDevice) start() error {
	if err := d.check(C.cuda_device_open(d.platform.api, C.int(d.index), &d.c)); err != nil {
		return err
	}
	var name [128]C.char
	if err := d.check(C.cuda_device_name(d.c, &name[0], C.int(len(name)))); err != nil {
		return err
	}
	d.model = C.GoString(&name[0])
	var found [4]C.int
	for i, a := range []C.int{attributeMultiprocessors, attributeUnified, attributeMajor, attributeMinor} {
		if err := d.check(C.cuda_device_attribute(d.c, a, &found[i])); err != nil {
			return err
		}
	}
	if found[1] == 0 {
		return fmt.Errorf("hip: %s (%s) does not share the host's addresses, which Sluice needs", d.Name(), d.model)
	}
	d.units, d.arch = int(found[0]), fmt.Sprintf("sm_%d%d", found[2], found[3])
	d.running = map[worker]struct{}{}
	d.modules = map[[sha256.Size]byte]*nvidiaModule{}
	d.peers = map[int]error{}
	d.waiting = map[*nvidiaStream]hold{}
	d.own = slabs{least: leastSlab, grow: d.growOwn, shrink: d.shrinkOwn}
	d.pinned = slabs{least: leastSlab, grow: d.growPinned, shrink: d.shrinkPinned}
	if err := d.makeStreams(); err != nil {
		return err
	}
	return d.makeBuffers()
}

// makeStreams makes all streams that the device will ever have. One connection
// is left over: with as many waiting streams as connections no kernel runs.
func (d *nvidiaDevice) makeStreams() error {
	d.streams = d.platform.connections - 1 - reservedStreams
	if d.streams < 2 {
		return &StreamLimitError{Device: d.Name(), For: "a world", Limit: max(d.streams, 0), Connections: d.platform.connections, Setting: connectionSetting}
	}
	for range d.streams {
		s, err := d.makeStream()
		if err != nil {
			return err
		}
		d.free = append(d.free, s)
	}
	return nil
}

func (d *nvidiaDevice) makeStream() (s C.cuda_handle, err error) {
	err = d.check(C.cuda_stream_create(d.c, &s))
	return s, err
}

// makeBuffers makes the pinned memory that the device and the host meet in.
func (d *nvidiaDevice) makeBuffers() (err error) {
	if d.words, err = d.newWordPage(); err != nil {
		return err
	}
	if d.control, err = d.newPort(controlBytes); err != nil {
		return err
	}
	d.bulk, err = d.newPort(bulkBytes)
	return err
}

// check turns a result into an error.
func (d *nvidiaDevice) check(r C.cuda_result) error { return d.checkFor("", r) }

// checkFor is check for a call about a queue or stream.
func (d *nvidiaDevice) checkFor(queue string, r C.cuda_result) error {
	if r.code == 0 {
		return nil
	}
	e := &CUDAError{
		Call: C.GoString(r.call), Device: d.Name(), Queue: queue, Code: int(r.code),
		Name: C.GoString(C.cuda_error_name(d.platform.api, r.code)),
		Text: C.GoString(C.cuda_error_text(d.platform.api, r.code)),
	}
	if lasting(e.Code) {
		d.lost.CompareAndSwap(nil, e)
	}
	return e
}

// lasting says whether the driver answers every call after this error with it.
func lasting(code int) bool {
	const (
		illegalAddress = 700
		launchTimeout  = 702
		firstFault     = 710 // an assert; then faults of every kind
		lastFault      = 721
	)
	return code == illegalAddress || code == launchTimeout || firstFault <= code && code <= lastFault
}

// sound is why the device cannot be used any more, nil if it can.
func (d *nvidiaDevice) sound() error {
	if e := d.lost.Load(); e != nil {
		return fmt.Errorf("%s is lost to this process since: %w", d.Name(), e)
	}
	return nil
}

func (d *nvidiaDevice) Name() string { return fmt.Sprintf("nvidia:%d", d.index) }

func (d *nvidiaDevice) Properties() Properties {
	return Properties{
		Arch: d.arch, LargestCopy: 1 << 30, Modules: true,
		Memories: []MemoryKind{DeviceMemory, HostMemory},
	}
}

func (d *nvidiaDevice) Alloc(n int64) (*Memory, error) {
	return d.alloc(&d.own, n, func(l *slab, off int64, back func()) *Memory {
		return newFarMemory(l.addr+uint64(off), n, d, back)
	})
}

func (d *nvidiaDevice) AllocHost(n int64) (*Memory, error) {
	return d.alloc(&d.pinned, n, func(l *slab, off int64, back func()) *Memory {
		return newMemory(l.bytes[off:off+n:off+n], back)
	})
}

// alloc takes memory from slabs and clears it.
func (d *nvidiaDevice) alloc(from *slabs, n int64, make func(*slab, int64, func()) *Memory) (*Memory, error) {
	if err := d.sound(); err != nil {
		return nil, &MemoryError{d.Name(), n, err}
	}
	if n <= 0 || n > maxHostBytes {
		return nil, &MemoryError{d.Name(), n, errors.New("one allocation has 1 byte to 1 TiB")}
	}
	l, off, err := from.take(n)
	if err != nil {
		return nil, &MemoryError{d.Name(), n, err}
	}
	m := make(l, off, func() { from.put(l, off, n) })
	if err := m.Clear(0, n); err != nil {
		m.Free()
		return nil, &MemoryError{d.Name(), n, err}
	}
	return m, nil
}

// busy says what the device does.
func (d *nvidiaDevice) busy() (by []string) {
	for _, w := range d.workers() {
		if what := w.busy(); what != "" {
			by = append(by, what)
		}
	}
	return by
}

// workers are the streams in use.
func (d *nvidiaDevice) workers() []worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.running))
}

// takeStream gives out a stream that nobody uses.
func (d *nvidiaDevice) takeStream(what string) (C.cuda_handle, error) {
	if err := d.sound(); err != nil {
		return nil, err
	}
	d.reclaim()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.free) == 0 {
		return nil, &StreamLimitError{Device: d.Name(), For: what, Limit: d.streams, Connections: d.platform.connections, Setting: connectionSetting}
	}
	last := len(d.free) - 1
	s := d.free[last]
	d.free = d.free[:last]
	return s, nil
}

// reclaim takes back the streams of closed queues that have nothing left to do.
func (d *nvidiaDevice) reclaim() {
	for _, w := range d.workers() {
		if q, ok := w.(*nvidiaQueue); ok {
			q.reclaim()
		}
	}
}

// began counts w among the streams in use.
func (d *nvidiaDevice) began(w worker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[w] = struct{}{}
}

// putStream takes back a stream on which nothing is left to do.
func (d *nvidiaDevice) putStream(w worker, s C.cuda_handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, w)
	d.free = append(d.free, s)
}

// reach lets streams of d use the memory of another device.
func (d *nvidiaDevice) reach(o *nvidiaDevice) error {
	if d == o {
		return nil
	}
	d.linking.Lock()
	defer d.linking.Unlock()
	err, asked := d.peers[o.index]
	if !asked {
		err = d.enable(o)
		if busy := (*BusyError)(nil); !errors.As(err, &busy) {
			d.peers[o.index] = err
		}
	}
	return err
}

func (d *nvidiaDevice) enable(o *nvidiaDevice) error {
	var can C.int
	if err := d.check(C.cuda_peer_access(d.c, o.c, &can)); err != nil {
		return err
	}
	if can == 0 {
		return fmt.Errorf("hip: %s (%s) cannot reach the memory of %s (%s): place one of the ranks in host memory", d.Name(), d.model, o.Name(), o.model)
	}
	return d.platform.calmly("reaching the memory of "+o.Name(), d.Name(), func() error {
		return d.check(C.cuda_peer_enable(d.c, o.c))
	})
}

// Reach lets the device's kernels and streams use the memory of another device
// of its platform.
func (d *nvidiaDevice) Reach(other Device) error {
	o, ok := other.(*nvidiaDevice)
	if !ok {
		return fmt.Errorf("hip: %s and %s are devices of different platforms", d.Name(), other.Name())
	}
	return d.reach(o)
}

// Load implements Device.
func (d *nvidiaDevice) Load(image []byte) (Module, error) {
	if err := d.sound(); err != nil {
		return nil, err
	}
	key := sha256.Sum256(image)
	d.mu.Lock()
	m := d.modules[key]
	if m != nil {
		m.users++
	}
	d.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m = &nvidiaModule{device: d, key: key, users: 1, functions: map[string]*Function{}}
	if err := d.platform.calmly("loading a module", d.Name(), func() error { return m.load(image) }); err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.modules[key] = m
	d.mu.Unlock()
	return m, nil
}

// Prove implements Device.
func (d *nvidiaDevice) Prove(ctx context.Context, probe *Function) error {
	if err := d.sound(); err != nil {
		return err
	}
	return (&proof{device: d}).run(ctx, probe)
}
