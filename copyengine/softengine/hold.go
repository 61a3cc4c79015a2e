package softengine

import "github.com/triggeredplans/sluice/hip"

// hold is the allocation that packets reached last in one role. It is held
// while it is here, so that packets which stay in one allocation neither search
// for it nor touch its count.
type hold struct{ memory *hip.Memory }

// reach finds the allocation of [addr, addr+n) and the offset in it.
func (h *hold) reach(addr uint64, n int64) (*hip.Memory, int64, error) {
	if m := h.memory; m != nil && !m.Freed() {
		if off := addr - m.Addr(); off < uint64(m.Size()) && uint64(n) <= uint64(m.Size())-off {
			return m, int64(off), nil
		}
	}
	h.release()
	m, off, err := hip.Resolve(addr, n)
	if err != nil {
		return nil, 0, err
	}
	h.memory = m
	return m, off, nil
}

// bytes is the n bytes at addr, mapped until the hold's next use.
func (h *hold) bytes(addr uint64, n int64) ([]byte, error) {
	m, off, err := h.reach(addr, n)
	if err != nil {
		return nil, err
	}
	return m.Bytes(off, n), nil
}

// word is the 64-bit word that holds addr, and which half of it addr is in.
func (h *hold) word(addr uint64) (*hip.Word, int, error) {
	m, off, err := h.reach(addr&^7, 8)
	if err != nil {
		return nil, 0, err
	}
	return m.Word(off), int(addr >> 2 & 1), nil
}

func (h *hold) release() {
	if h.memory != nil {
		h.memory.Release()
		h.memory = nil
	}
}
