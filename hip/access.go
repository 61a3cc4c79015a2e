package hip

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"
)

// pieceBytes is how much one Go copy moves at a time: the collector cannot stop
// a goroutine inside one, and everybody would wait.
const pieceBytes = 1 << 20

// RangeError says that an access is not inside its allocation.
type RangeError struct {
	Off, Bytes, Size int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("hip: %d bytes at offset %d are not inside an allocation of %d bytes", e.Bytes, e.Off, e.Size)
}

// inside checks that [off, off+n) lies in the allocation.
func (m *Memory) inside(off, n int64) error {
	if off < 0 || n < 0 || off > m.size || n > m.size-off {
		return &RangeError{Off: off, Bytes: n, Size: m.size}
	}
	return nil
}

// ReadAt copies len(dst) bytes from off on into dst, wherever the memory is.
// The error is a *RangeError, or what the device says.
func (m *Memory) ReadAt(dst []byte, off int64) error {
	if err := m.inside(off, int64(len(dst))); err != nil {
		return err
	}
	if !m.Mapped() {
		return m.far.read(m.addr+uint64(off), dst)
	}
	pieces(m.bytes[off:off+int64(len(dst))], func(p []byte) {
		copy(dst, p)
		dst = dst[len(p):]
	})
	return nil
}

// WriteAt copies src to off, wherever the memory is. Errors are those of
// ReadAt.
func (m *Memory) WriteAt(src []byte, off int64) error {
	if err := m.inside(off, int64(len(src))); err != nil || len(src) == 0 {
		return err
	}
	if !m.Mapped() {
		return m.far.write(m.addr+uint64(off), int64(len(src)), int64(len(src)), src)
	}
	pieces(m.bytes[off:off+int64(len(src))], func(p []byte) {
		copy(p, src)
		src = src[len(p):]
	})
	return nil
}

// Clear zeroes n bytes from off on, wherever the memory is. Errors are those of
// ReadAt.
func (m *Memory) Clear(off, n int64) error {
	if err := m.inside(off, n); err != nil || n == 0 {
		return err
	}
	if !m.Mapped() {
		return m.far.clear(m.addr+uint64(off), n)
	}
	pieces(m.bytes[off:off+n], func(p []byte) { clear(p) })
	return nil
}

// pieces hands out b piece by piece and yields in between.
func pieces(b []byte, do func([]byte)) {
	for len(b) > pieceBytes {
		do(b[:pieceBytes])
		b = b[pieceBytes:]
		runtime.Gosched()
	}
	do(b)
}

// LoadWord reads the word at off, wherever the memory is. Errors are those of
// ReadAt.
func (m *Memory) LoadWord(off int64) (uint64, error) {
	if err := m.inside(off, 8); err != nil {
		return 0, err
	}
	if m.Mapped() {
		return m.Word(off).Load(), nil
	}
	var v [1]uint64
	err := m.far.read(m.addr+uint64(off), wordBytes(v[:]))
	return v[0], err
}

// StoreWord writes the word at off, wherever the memory is, and wakes its
// waiters. Errors are those of ReadAt.
func (m *Memory) StoreWord(off int64, v uint64) error {
	if err := m.inside(off, 8); err != nil {
		return err
	}
	if m.Mapped() {
		m.Word(off).Store(v)
		return nil
	}
	return m.far.write(m.addr+uint64(off), 8, 8, wordBytes([]uint64{v}))
}

// AwaitWord waits until ready holds of the word at off, wherever the memory is,
// and returns the word's value as it saw it last. w must watch nothing. The
// error is ctx's cause, or one of ReadAt.
func (m *Memory) AwaitWord(ctx context.Context, w *Waiter, off int64, ready func(uint64) bool) (v uint64, err error) {
	if m.Mapped() {
		word := m.Word(off)
		err = w.Await(ctx, word, ready, nil)
		return word.Load(), err
	}
	w.Poll()
	defer w.Unwatch()
	for {
		if v, err = m.LoadWord(off); err != nil || ready(v) {
			return v, err
		}
		if err := w.Park(ctx); err != nil {
			return v, err
		}
	}
}

// wordSpan is how many bytes n words take that are stride bytes apart.
func wordSpan(stride int64, n int) int64 {
	if n == 0 {
		return 0
	}
	return int64(n-1)*stride + 8
}

// LoadWords reads len(dst) words, the first at off and the next each stride
// bytes on, wherever the memory is. Both are multiples of 8. Memory that is not
// mapped is read in one sweep from the first word to the last. Errors are those
// of ReadAt.
func (m *Memory) LoadWords(off, stride int64, dst []uint64) error {
	if err := m.inside(off, wordSpan(stride, len(dst))); err != nil {
		return err
	}
	if m.Mapped() {
		for i := range dst {
			dst[i] = m.Word(off + int64(i)*stride).Load()
		}
		return nil
	}
	if stride == 8 {
		return m.far.read(m.addr+uint64(off), wordBytes(dst))
	}
	raw := make([]byte, wordSpan(stride, len(dst)))
	if err := m.far.read(m.addr+uint64(off), raw); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint64(raw[int64(i)*stride:])
	}
	return nil
}

// StoreWords writes the words of src, the first at off and the next each
// stride bytes on, wherever the memory is, and wakes their waiters. What lies
// between them stays as it is. Errors are those of ReadAt.
func (m *Memory) StoreWords(off, stride int64, src []uint64) error {
	if err := m.inside(off, wordSpan(stride, len(src))); err != nil || len(src) == 0 {
		return err
	}
	if m.Mapped() {
		for i, v := range src {
			m.Word(off + int64(i)*stride).Store(v)
		}
		return nil
	}
	width := int64(8)
	if stride == 8 {
		width *= int64(len(src))
	}
	return m.far.write(m.addr+uint64(off), max(stride, width), width, wordBytes(src))
}

// wordBytes is the words' bytes, as every machine here has them: the lowest
// first.
func wordBytes(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
