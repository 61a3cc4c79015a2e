package copyengine

import (
	"errors"
	"slices"

	"github.com/triggeredplans/sluice/internal/inject"
)

// Item is one rank's program for one queue in a preparation.
type Item struct {
	Queue   *Queue
	Program Program
	Owner   *Owner
}

// SortItems puts items into the order in which Prepare takes them.
func SortItems(items []Item) {
	slices.SortFunc(items, func(a, b Item) int { return a.Queue.id - b.Queue.id })
}

// Prepare puts every item's program on its queue, for a round, or none of
// them. All queues are locked together, in one order that is the same for
// everybody, so two preparations are in the same order on every queue they
// share. It waits for nothing but the locks.
//
// When it fails, rank says whose item it was. If the error is a *RingError,
// some programs are on their way: the owners must open their gates.
func Prepare(items []Item, round uint64) (rank int, err error) {
	for _, it := range items {
		it.Queue.mu.Lock()
	}
	defer func() {
		for _, it := range items {
			it.Queue.mu.Unlock()
		}
	}()
	for _, it := range items {
		if err := it.admit(); err != nil {
			return it.Owner.Rank, err
		}
	}
	appended, rung := 0, 0
	defer func() { takeBack(items[rung:appended]) }() // also if a step does not return
	for _, it := range items {
		end, err := it.Queue.hw.Append(it.Program)
		if err != nil {
			return it.Owner.Rank, err
		}
		it.Queue.ledger.push(it.Owner, round, loadOf(it.Program), end)
		appended++
	}
	for _, it := range items {
		if err := it.ring(); err != nil {
			if errors.Is(err, ErrTorn) {
				rung++
			}
			if rung == 0 { // no engine has been told of anything
				return it.Owner.Rank, err
			}
			return it.Owner.Rank, &RingError{Rank: it.Owner.Rank, Queue: it.Queue.Name(), Err: err}
		}
		rung++
	}
	return 0, nil
}

// admit says whether the item may be prepared.
func (it Item) admit() error {
	q := it.Queue
	if err := q.usable(); err != nil {
		return err
	}
	if err := q.node.Inject(inject.Reserve, it.Owner.Rank); err != nil {
		return err
	}
	q.ledger.advance(q.hw.Passed())
	return q.ledger.admit(loadOf(it.Program))
}

func (it Item) ring() error {
	if err := it.Queue.node.Inject(inject.Ring, it.Owner.Rank); err != nil {
		return err
	}
	return it.Queue.hw.Ring()
}

// takeBack undoes what was appended for items that were not rung.
func takeBack(items []Item) {
	for _, it := range items {
		it.Queue.hw.Rollback()
		it.Queue.ledger.pop()
	}
}
