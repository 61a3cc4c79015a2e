package kernels

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip"
)

// words is a row of 64-bit words from an address to the end of its allocation.
type words struct {
	m   *hip.Memory
	off int64
	n   uint64
}

// openWords holds the row until the thread ends.
func openWords(t *hip.Thread, addr uint64) (words, error) {
	if addr&7 != 0 {
		return words{}, &hip.AddressError{Addr: addr, Bytes: 8, Unaligned: true}
	}
	m, off, err := t.Resolve(addr, 8)
	if err != nil {
		return words{}, err
	}
	return words{m, off, uint64(m.Size()-off) / 8}, nil
}

// read copies the words from index i on into dst.
func (w words) read(i uint64, dst []uint64) error {
	if n := uint64(len(dst)); i > w.n || n > w.n-i {
		return fmt.Errorf("words %d to %d lie outside its allocation, which ends with word %d", i, i+n-1, w.n-1)
	}
	w.m.LoadWords(w.off+int64(i)*8, 8, dst)
	return nil
}
