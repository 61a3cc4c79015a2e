package softengine

import "github.com/triggeredplans/sluice/hip"

// hold is the allocation that packets reached last in one role. It is held
// while packets stay in it, so that they neither search for it nor touch its
// count; once let go of it is still remembered.
type hold struct {
	memory *hip.Memory
	held   bool
}

// reach finds the allocation of [addr, addr+n) and the offset in it.
func (h *hold) reach(addr uint64, n int64) (*hip.Memory, int64, error) {
	if m := h.memory; m != nil {
		if off, holds := m.Offset(addr, n); holds && (h.held || m.Hold()) {
			h.held = true
			return m, off, nil
		}
	}
	h.release()
	m, off, err := hip.Resolve(addr, n)
	if err != nil {
		return nil, 0, err
	}
	h.memory, h.held = m, true
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
	if h.held {
		h.memory.Release()
		h.held = false
	}
}
