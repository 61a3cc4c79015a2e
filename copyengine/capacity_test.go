package copyengine

import (
	"testing"
)

func TestARingHas8MiBAndPreparedCopiesMayHoldHalfOfIt(t *testing.T) {
	t.Parallel()
	node, err := NewNode(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, Config{})
	r.node = node
	l := r.queue(0, 1).Limits()
	if l.Capacity != 8<<20 || l.Prepared != 4<<20 || l.Puts > 4<<20 || l.Unit != "bytes" {
		t.Errorf("the limits are %+v", l)
	}
}

// What is prepared gives its room back when it has been executed, and not
// before.
func TestPreparedCopiesHoldTheirRoomUntilTheirGatesOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	q := r.queue(0, 1)
	limit, each := q.Limits().Prepared, r.compile(q, r.gated()).Cost()
	for range 3 { // the ring wraps
		var works []work
		o := &Owner{Plan: "full"}
		for held := int64(0); held+each <= limit; held += each {
			w := r.gated()
			works = append(works, w)
			r.mustPrepare(o, q, w)
		}
		more := r.gated()
		_, err := r.prepare(o, []*Queue{q}, more)
		if e, bad := expect[*CapacityError](err); bad != nil || e.Held != each*int64(len(works)) || len(e.Holders) != len(works) {
			t.Fatalf("with %d prepared got %v", len(works), err)
		}
		works[1].gate.Store(1) // behind one whose gate is shut
		if held := q.Snapshot().Held; held != each*int64(len(works)) {
			t.Errorf("%d are held, want %d", held, each*int64(len(works)))
		}
		works[0].gate.Store(1)
		r.carried(works[1])
		if _, err := r.prepare(o, []*Queue{q}, more); err != nil {
			t.Errorf("two are executed, and there is no room: %v", err)
		}
		for _, w := range append(works, more) {
			w.gate.Store(1)
			r.carried(w)
		}
		r.must(q.Drain(r.soon(), waiter(), o))
		r.next = 0 // words come again, as zeros
		for i := range r.mem.Size() / 8 {
			r.mem.Word(8 * i).Store(0)
		}
	}
}
