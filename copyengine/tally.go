package copyengine

import "sync"

// tally counts what a ring has carried by what was written to it and how far it
// was read.
type tally struct {
	mu       sync.Mutex
	appended []carried // and not rung
	rung     []carried // and not passed, when somebody last looked
	total    Stats
}

// carried is one program on its way.
type carried struct {
	end           uint64
	copies, bytes uint64
}

func (t *tally) append(end uint64, p Program) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appended = append(t.appended, carried{end, uint64(p.Copies()), uint64(p.Bytes())})
}

// ring says that what was appended is on its way, and how far the ring is read.
func (t *tally) ring(read uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(read)
	t.rung = append(t.rung, t.appended...)
	t.appended = t.appended[:0]
}

func (t *tally) rollback() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appended = t.appended[:0]
}

// carried is what programs up to a count have carried.
func (t *tally) carried(read uint64) Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(read)
	return t.total
}

func (t *tally) advance(read uint64) {
	n := 0
	for ; n < len(t.rung) && t.rung[n].end <= read; n++ {
		t.total.Copies += t.rung[n].copies
		t.total.Bytes += t.rung[n].bytes
	}
	t.rung = t.rung[:copy(t.rung, t.rung[n:])]
}
