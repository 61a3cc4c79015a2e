package kernels

import "github.com/triggeredplans/sluice/hip"

// An error row is 64 bytes, in which kernels that check data count what they
// found: three 8-byte words, then zeros.
const (
	ErrorRow     = 64 // bytes
	ErrorBytes   = 0  // wrong bytes
	ErrorChunk   = 8  // 1 + a chunk with wrong bytes, 0 if there is none
	ErrorChecked = 16 // chunks, or operations, that were checked to the end
)

// errorRow is an error row that a kernel adds to.
type errorRow struct {
	t                     *hip.Thread
	bytes, chunk, checked *hip.Word
}

func openErrorRow(t *hip.Thread, addr uint64) (errorRow, error) {
	if addr&7 != 0 {
		return errorRow{}, &hip.AddressError{Addr: addr, Bytes: 8, Unaligned: true}
	}
	m, off, err := t.Resolve(addr, ErrorRow)
	if err != nil {
		return errorRow{}, err
	}
	return errorRow{t, m.Word(off + ErrorBytes), m.Word(off + ErrorChunk), m.Word(off + ErrorChecked)}, nil
}

// add counts the wrong bytes that a thread found in a chunk (-1 for none in
// particular). The whole CTA calls it, and the check counts as made when every
// thread has.
func (r errorRow) add(chunk int, wrong uint64) {
	if wrong > 0 {
		if chunk >= 0 {
			r.chunk.Store(uint64(chunk) + 1)
		}
		r.bytes.Add(wrong)
	}
	r.t.Barrier()
	if r.t.Index == 0 {
		r.checked.Add(1)
	}
}
