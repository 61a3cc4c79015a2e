package hip

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Memory is one allocation on a device, reached by address from packets and
// kernels and by offset from Go. It is counted: Free drops the owner's hold,
// and the bytes go back to the system when the last holder has let go.
//
// Where the host can reach it, its bytes and words are used in place; where it
// cannot, ReadAt, WriteAt, Clear, LoadWords and StoreWords carry them.
type Memory struct {
	addr  uint64
	size  int64
	bytes []byte // nil where the host cannot reach them
	far   carrier
	back  func() // gives the bytes back to the system
	holds atomic.Int64
	freed atomic.Bool
}

// carrier moves bytes between Go memory and memory that the host cannot reach.
type carrier interface {
	// read fills dst with the bytes at addr.
	read(addr uint64, dst []byte) error
	// write puts rows of width bytes from src, one after the other, to addr,
	// pitch bytes apart.
	write(addr uint64, pitch, width int64, src []byte) error
	// clear zeroes n bytes at addr.
	clear(addr uint64, n int64) error
}

// newMemory registers bytes so that their addresses resolve.
func newMemory(bytes []byte, back func()) *Memory {
	m := &Memory{addr: uint64(uintptr(unsafe.Pointer(&bytes[0]))), size: int64(len(bytes)), bytes: bytes, back: back}
	m.holds.Store(1)
	space.add(m)
	return m
}

// newFarMemory is memory that only far reaches. Its addresses do not resolve.
func newFarMemory(addr uint64, size int64, far carrier, back func()) *Memory {
	m := &Memory{addr: addr, size: size, far: far, back: back}
	m.holds.Store(1)
	return m
}

// Addr is the address of the first byte, as packets and kernels see it.
func (m *Memory) Addr() uint64 { return m.addr }

// Size is the length in bytes.
func (m *Memory) Size() int64 { return m.size }

// Mapped reports whether the host reaches the memory in place: Bytes and Word
// are only for memory that is mapped.
func (m *Memory) Mapped() bool { return m.far == nil }

// Bytes is the window [off, off+n) of mapped memory. It panics, as a slice
// expression does, when the window is not inside the allocation.
func (m *Memory) Bytes(off, n int64) []byte { return m.bytes[off : off+n : off+n] }

// Word is the 8-byte word at off of mapped memory; off must be a multiple of 8
// inside the allocation.
func (m *Memory) Word(off int64) *Word {
	if off&7 != 0 {
		panic("hip: a word's offset is a multiple of 8")
	}
	return (*Word)(unsafe.Pointer(unsafe.SliceData(m.bytes[off : off+8])))
}

// Watch has w woken when the word at off is written; where the host is not told
// of that, w polls.
func (m *Memory) Watch(w *Waiter, off int64) {
	if m.Mapped() {
		w.Watch(m.Word(off))
	} else {
		w.Poll()
	}
}

// Glance is Watch for a word that is seldom written: where the host is not told
// of that, w looks now and then.
func (m *Memory) Glance(w *Waiter, off int64) {
	if m.Mapped() {
		w.Watch(m.Word(off))
	} else {
		w.Glance()
	}
}

// Hold keeps the bytes from being given back until Release; it reports false
// if they have gone already.
func (m *Memory) Hold() bool {
	for {
		n := m.holds.Load()
		if n == 0 {
			return false
		}
		if m.holds.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends a Hold.
func (m *Memory) Release() {
	if m.holds.Add(-1) == 0 {
		m.back()
	}
}

// Free ends the allocation: its addresses no longer resolve, and its bytes go
// back to the system once nobody holds them. Freeing twice has no effect.
func (m *Memory) Free() {
	if m.freed.CompareAndSwap(false, true) {
		if m.Mapped() {
			space.remove(m)
		}
		m.Release()
	}
}

// Freed reports whether Free has been called: who holds the memory should let
// go of it soon.
func (m *Memory) Freed() bool { return m.freed.Load() }

// Offset is where [addr, addr+n) begins in m, if m is live and holds all of it.
func (m *Memory) Offset(addr uint64, n int64) (off int64, holds bool) {
	off = int64(addr - m.addr)
	return off, off >= 0 && n >= 0 && off < m.size && n <= m.size-off && !m.Freed()
}

// Resolve finds the mapped allocation that holds [addr, addr+n) and holds it:
// the caller ends with Release on the Memory it returns. The error is an
// *AddressError when no live allocation holds all of the bytes.
func Resolve(addr uint64, n int64) (*Memory, int64, error) {
	if m := space.find(addr); m != nil {
		if off, holds := m.Offset(addr, n); holds && m.Hold() {
			return m, off, nil
		}
	}
	return nil, 0, &AddressError{Addr: addr, Bytes: n}
}

// ResolveWord is Resolve for the 8-byte word at addr.
func ResolveWord(addr uint64) (*Memory, *Word, error) {
	if addr&7 != 0 {
		return nil, nil, &AddressError{Addr: addr, Bytes: 8, Unaligned: true}
	}
	m, off, err := Resolve(addr, 8)
	if err != nil {
		return nil, nil, err
	}
	return m, m.Word(off), nil
}

// AddressError says that an address is not one of registered memory.
type AddressError struct {
	Addr      uint64
	Bytes     int64
	Unaligned bool // the address of a word is not a multiple of its size
}

func (e *AddressError) Error() string {
	if e.Unaligned {
		return fmt.Sprintf("hip: the word at %#x is not aligned to its size", e.Addr)
	}
	return fmt.Sprintf("hip: %d bytes at %#x are not inside one live allocation", e.Bytes, e.Addr)
}

// addressSpace is every live allocation of the process in order of address.
// Readers take the slice as it stands; writers replace it.
type addressSpace struct {
	mu   sync.Mutex
	live atomic.Pointer[[]*Memory]
}

var space addressSpace

func byAddr(m *Memory, addr uint64) int {
	switch {
	case m.addr < addr:
		return -1
	case m.addr > addr:
		return 1
	}
	return 0
}

func (s *addressSpace) add(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var live []*Memory
	if p := s.live.Load(); p != nil {
		live = *p
	}
	i, _ := slices.BinarySearchFunc(live, m.addr, byAddr)
	next := slices.Insert(slices.Clone(live), i, m)
	s.live.Store(&next)
}

func (s *addressSpace) remove(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := *s.live.Load()
	i, _ := slices.BinarySearchFunc(live, m.addr, byAddr)
	next := slices.Delete(slices.Clone(live), i, i+1)
	s.live.Store(&next)
}

// find returns the allocation whose range addr falls in, or nil.
func (s *addressSpace) find(addr uint64) *Memory {
	p := s.live.Load()
	if p == nil {
		return nil
	}
	i, exact := slices.BinarySearchFunc(*p, addr, byAddr)
	if !exact {
		i--
	}
	if i < 0 || addr-(*p)[i].addr >= uint64(len((*p)[i].bytes)) {
		return nil
	}
	return (*p)[i]
}
