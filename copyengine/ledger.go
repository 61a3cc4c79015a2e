package copyengine

import (
	"fmt"
	"slices"
)

// Owner is one rank's part of a plan, as queues know it. A queue compares
// owners by identity; the fields are for people.
type Owner struct {
	World, Plan string
	Rank        int
	// Faulted, if not nil, is told once per queue that a queue on which the
	// owner has copies prepared has faulted. It must not call the queue.
	Faulted func(error)
}

// Stage is how far what an owner prepared has come.
type Stage int

const (
	Prepared Stage = iota // waits to be started
	Started               // its producer may be marking chunks
	Flushed               // its gates are open: it needs nobody to go on
)

// entry is what one owner has prepared on a queue for a round.
type entry struct {
	owner *Owner
	round uint64
	load  load
	end   uint64
	stage Stage
}

// load is what something holds of a queue.
type load struct {
	cost    int64 // in the queue's unit
	batched int64 // copies in batches
}

func loadOf(p Program) load { return load{p.Cost(), p.Batched()} }

func (a load) plus(b load) load  { return load{a.cost + b.cost, a.batched + b.batched} }
func (a load) minus(b load) load { return load{a.cost - b.cost, a.batched - b.batched} }

// put is a host Put that the engine has not passed yet.
type put struct {
	Put
	load load
	end  uint64
}

// ledger is what is on a queue, in order. It does no I/O: the queue feeds it
// positions and asks it for verdicts.
type ledger struct {
	limits  Limits
	name    string // of the queue, for errors
	entries []entry
	puts    []put
	held    load // by entries
	putHeld load
	high    int64 // the highest cost that entries have held
}

// advance drops what the engine has passed.
func (l *ledger) advance(passed uint64) {
	n := 0
	for n < len(l.entries) && l.entries[n].end <= passed {
		l.held = l.held.minus(l.entries[n].load)
		n++
	}
	if n > 0 {
		l.entries = slices.Delete(l.entries, 0, n)
	}
	n = 0
	for n < len(l.puts) && l.puts[n].end <= passed {
		n++
	}
	l.dropPuts(n, nil)
}

// dropPuts forgets the first n puts, which were carried unless lost says why
// not.
func (l *ledger) dropPuts(n int, lost error) {
	for i := range n {
		l.putHeld = l.putHeld.minus(l.puts[i].load)
		if l.puts[i].Done != nil {
			l.puts[i].Done(lost)
		}
	}
	l.puts = slices.Delete(l.puts, 0, n)
}

// admit says whether so much more may be prepared.
func (l *ledger) admit(more load) error {
	for i := range l.puts {
		if l.puts[i].Flag != nil {
			return fmt.Errorf("%w: queue %s has a Put that waits for its flag; store the flag, or wait with Quiet", ErrPutWaits, l.name)
		}
	}
	return l.beyond(more, l.held, l.limits.Prepared, l.holders)
}

// batchedUnit is the second thing that queues may bound.
const batchedUnit = "copies in batches"

// beyond returns a *CapacityError if more does not fit beside what is held.
func (l *ledger) beyond(more, held load, limit int64, holders func() []Holder) error {
	switch {
	case held.cost+more.cost > limit:
		return &CapacityError{Queue: l.name, Unit: l.limits.Unit, Want: more.cost, Held: held.cost, Limit: limit, Holders: holders()}
	case l.limits.Batched > 0 && held.batched+more.batched > l.limits.Batched:
		hs := holders()
		for i := range hs {
			hs[i].Cost = l.entries[i].load.batched
		}
		return &CapacityError{Queue: l.name, Unit: batchedUnit, Want: more.batched, Held: held.batched, Limit: l.limits.Batched, Holders: hs}
	}
	return nil
}

// holders names what holds the queue, in order.
func (l *ledger) holders() []Holder {
	hs := make([]Holder, len(l.entries))
	for i := range l.entries {
		hs[i] = l.entries[i].holder()
	}
	return hs
}

func (e *entry) holder() Holder {
	return Holder{World: e.owner.World, Plan: e.owner.Plan, Rank: e.owner.Rank, Round: e.round, Cost: e.load.cost}
}

func (l *ledger) push(o *Owner, round uint64, held load, end uint64) {
	l.entries = append(l.entries, entry{o, round, held, end, Prepared})
	l.held = l.held.plus(held)
	l.high = max(l.high, l.held.cost)
}

// pop takes back the newest entry.
func (l *ledger) pop() {
	last := len(l.entries) - 1
	l.held = l.held.minus(l.entries[last].load)
	l.entries = l.entries[:last]
}

func (l *ledger) find(o *Owner) *entry {
	for i := range l.entries {
		if l.entries[i].owner == o {
			return &l.entries[i]
		}
	}
	return nil
}

// before returns the first entry ahead of o's whose stage is under s, or nil.
// With nothing of o's on the queue there is nothing ahead of it.
func (l *ledger) before(o *Owner, s Stage) *entry {
	var first *entry
	for i := range l.entries {
		e := &l.entries[i]
		if e.owner == o {
			return first
		}
		if e.stage < s && first == nil {
			first = e
		}
	}
	return nil
}

// remove forgets o's entry, whose packets no engine will execute any more.
func (l *ledger) remove(o *Owner) {
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool {
		if e.owner == o {
			l.held = l.held.minus(e.load)
		}
		return e.owner == o
	})
}

// admitPut says whether a Put may go now (nil), must wait for room (errNoRoom),
// or is refused.
func (l *ledger) admitPut(more load) error {
	if err := l.exclude("Put"); err != nil {
		return err
	}
	nobody := func() []Holder { return nil }
	if err := l.beyond(more, load{}, l.limits.Puts, nobody); err != nil {
		return err
	}
	if l.beyond(more, l.putHeld, l.limits.Puts, nobody) != nil {
		return errNoRoom
	}
	return nil
}

// exclude refuses host operations while copies are prepared.
func (l *ledger) exclude(op string) error {
	if len(l.entries) == 0 {
		return nil
	}
	return &ExclusionError{Op: op, Queue: l.name, Holders: l.holders()}
}

func (l *ledger) pushPut(p Put, held load, end uint64) {
	l.puts = append(l.puts, put{p, held, end})
	l.putHeld = l.putHeld.plus(held)
}
