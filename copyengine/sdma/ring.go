package sdma

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip"
)

// MinRingBytes is the smallest ring.
const MinRingBytes = 4096

// Ring is the producer's side of a queue: packets are written, then rung, or
// taken back. Counts are of bytes and never wrap; a count's place is its
// remainder by the ring's size. The caller serialises all methods, by the
// queue's lock.
//
// The ring never takes so much that it would be full, since a full ring and an
// empty one would look alike, and no packet straddles its end: NOPs fill what
// is left there.
type Ring struct {
	bytes       []byte
	read, write *hip.Word
	doorbell    Doorbell
	written     uint64 // rung, and what has been written since
	rung        uint64
}

// NewRing makes a ring of bytes, whose size is a power of two of at least
// MinRingBytes. The engine advances read; Ring advances write. Both words hold
// the same count, a multiple of 4, to begin with: 0 in a new queue. The error is a
// *RingError.
func NewRing(bytes []byte, read, write *hip.Word, doorbell Doorbell) (*Ring, error) {
	if err := CheckRingSize(int64(len(bytes))); err != nil {
		return nil, err
	}
	if read == nil || write == nil || doorbell == nil {
		return nil, &RingError{"it needs a read word, a write word and a doorbell"}
	}
	at := write.Load()
	if r := read.Load(); r != at || at%4 != 0 {
		return nil, &RingError{fmt.Sprintf("its read count is %d and its write count %d; they must be the same multiple of 4", r, at)}
	}
	return &Ring{bytes: bytes, read: read, write: write, doorbell: doorbell, written: at, rung: at}, nil
}

// CheckRingSize says whether a ring may have n bytes. The error is a
// *RingError.
func CheckRingSize(n int64) error {
	if n < MinRingBytes || n&(n-1) != 0 {
		return &RingError{fmt.Sprintf("it has %d bytes; it must have a power of two, at least %d", n, MinRingBytes)}
	}
	return nil
}

// Size is the ring's size in bytes.
func (r *Ring) Size() int64 { return int64(len(r.bytes)) }

// ReadCount is how many bytes the engine has ever completed.
func (r *Ring) ReadCount() uint64 { return r.read.Load() }

// Written is how many bytes have ever been written, rung or not.
func (r *Ring) Written() uint64 { return r.written }

// Rung is how many bytes the engine has ever been told of.
func (r *Ring) Rung() uint64 { return r.rung }

// Free is how many bytes may still be written.
func (r *Ring) Free() int64 { return r.Size() - NOPBytes - int64(r.written-r.ReadCount()) }

// Append writes p, all of it or nothing, and returns the count at its end: p is
// done when ReadCount has reached that. The engine does not see it before Ring.
// The error is a *FullError.
func (r *Ring) Append(p *Program) (end uint64, err error) {
	if want, free := r.cost(p), r.Free(); want > free {
		return r.written, &FullError{Want: want, Free: free, Size: r.Size()}
	}
	for from := int64(0); from < p.Bytes(); {
		place := r.place()
		n := p.fits(from, r.Size()-place)
		p.copyTo(r.bytes[place:place+n], int(from))
		from += n
		r.written += uint64(n)
		if from < p.Bytes() {
			r.pad()
		}
	}
	p.stale = false
	return r.written, nil
}

// cost is what Append would write: p and its padding.
func (r *Ring) cost(p *Program) int64 {
	want, room := int64(0), r.Size()-r.place()
	for from := int64(0); from < p.Bytes(); room = r.Size() {
		n := p.fits(from, room)
		from += n
		want += n
		if from < p.Bytes() {
			want += room - n
		}
	}
	return want
}

// place is where the next packet goes.
func (r *Ring) place() int64 { return int64(r.written & uint64(len(r.bytes)-1)) }

// pad fills up to the ring's end, which is less than a packet away.
func (r *Ring) pad() {
	place := r.place()
	if place == 0 {
		return
	}
	n := r.Size() - place
	b := r.bytes[place:]
	le.PutUint32(b, uint32(OpNOP)|uint32(n/4-1)<<16)
	clear(b[4:])
	r.written += uint64(n)
}

// Ring tells the engine of everything written: the write count first, then the
// doorbell.
func (r *Ring) Ring() {
	if r.rung == r.written {
		return
	}
	r.rung = r.written
	r.write.Store(r.written)
	r.doorbell.Ring(r.written)
}

// Rollback takes back what was written and not rung, as if it had never been:
// its bytes are free again and the next Append writes over them.
func (r *Ring) Rollback() { r.written = r.rung }
