//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"sync"
	"unsafe"
)

func (d *nvidiaDevice) growOwn(n int64) (*slab, error) {
	l := &slab{size: n}
	err := d.platform.calmly("allocating memory", d.Name(), func() error {
		return d.check(C.cuda_alloc(d.c, C.size_t(n), (*C.cuda_ptr)(&l.addr)))
	})
	return l, err
}

func (d *nvidiaDevice) shrinkOwn(l *slab) error {
	return d.platform.calmly("freeing memory", d.Name(), func() error {
		return d.check(C.cuda_free(d.c, C.cuda_ptr(l.addr)))
	})
}

func (d *nvidiaDevice) growPinned(n int64) (l *slab, err error) {
	err = d.platform.calmly("allocating memory", d.Name(), func() error {
		l, err = d.pin(n)
		return err
	})
	return l, err
}

func (d *nvidiaDevice) shrinkPinned(l *slab) error {
	return d.platform.calmly("freeing memory", d.Name(), func() error {
		sweep.uncover(l.bytes)
		return d.check(C.cuda_host_free(d.c, unsafe.Pointer(unsafe.SliceData(l.bytes))))
	})
}

// pin allocates memory of the host that every device reaches at the address
// that it has on the host.
func (d *nvidiaDevice) pin(n int64) (*slab, error) {
	var at unsafe.Pointer
	var addr C.cuda_ptr
	if err := d.check(C.cuda_host_alloc(d.c, C.size_t(n), &at, &addr)); err != nil {
		return nil, err
	}
	l := &slab{addr: uint64(addr), bytes: unsafe.Slice((*byte)(at), n), size: n}
	sweep.cover(l.bytes)
	return l, nil
}

// wordPage has the words by which the device tells the host how far it is, each
// in a cache line of its own.
type wordPage struct {
	slab *slab

	mu   sync.Mutex
	free []int64 // offsets
}

const (
	wordPageBytes = 16 << 10
	wordLine      = 64
)

func (d *nvidiaDevice) newWordPage() (*wordPage, error) {
	l, err := d.pin(wordPageBytes)
	if err != nil {
		return nil, err
	}
	p := &wordPage{slab: l}
	for off := int64(0); off < wordPageBytes; off += wordLine {
		p.free = append(p.free, off)
	}
	return p, nil
}

// deviceWord is a word that the device writes and the host reads.
type deviceWord struct {
	*Word
	addr uint64
	off  int64
}

// take gives out a word of value v. There are more words than streams.
func (p *wordPage) take(v uint64) deviceWord {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	off := p.free[last]
	p.free = p.free[:last]
	w := (*Word)(unsafe.Pointer(unsafe.SliceData(p.slab.bytes[off : off+8])))
	w.Store(v)
	return deviceWord{w, p.slab.addr + uint64(off), off}
}

func (p *wordPage) put(w deviceWord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, w.off)
}
