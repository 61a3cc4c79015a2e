package main

import (
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/kernels"
)

// check looks at what the exchange left: what the consumer found, and every
// byte that puts went to or passed by. The error is a *example.WrongError if there are
// wrong bytes.
func (e *exchange) check(round int) error {
	wrong := func(n uint64, where string, args ...any) error {
		return example.Wrong(e.rank.ID(), uint64(round), n, where, args...)
	}
	found := make([]uint64, kernels.ErrorRow/8)
	if err := heap.Read(e.errors, found); err != nil {
		return err
	}
	if err := wrong(found[kernels.ErrorBytes/8], "the rows that came, by the consumer"); err != nil {
		return err
	}
	inbox, panes := make([]byte, e.inbox.Size()), make([]byte, e.panes.Size())
	if err := e.inbox.Read(inbox); err != nil {
		return err
	}
	if err := e.panes.Read(panes); err != nil {
		return err
	}
	for from := range e.rank.Size() {
		n := len(inbox) / e.rank.Size()
		if err := wrong(e.checkRows(inbox[from*n:][:n], from), "rank %d's rows", from); err != nil {
			return err
		}
		n = len(panes) / e.rank.Size()
		if err := wrong(e.checkPane(panes[from*n:][:n], from), "the window of rank %d's rows", from); err != nil {
			return err
		}
	}
	e.done++
	return nil
}

// checkRows counts the wrong bytes where a rank's rows go. Nobody puts to
// itself.
func (e *exchange) checkRows(b []byte, from int) uint64 {
	if from == e.rank.ID() {
		return notZero(b)
	}
	return uint64(kernels.CheckPattern(b, e.seed(from), 0))
}

// checkPane counts the wrong bytes where a window of a rank's rows goes, and
// beside it.
func (e *exchange) checkPane(b []byte, from int) (wrong uint64) {
	if from == e.rank.ID() {
		return notZero(b)
	}
	row, width, left := e.p.cols*elem, e.p.window()*elem, margin/2*elem
	for i := range e.p.rows {
		line := b[i*(width+margin*elem):][:width+margin*elem]
		wrong += notZero(line[:left]) + notZero(line[left+width:])
		wrong += uint64(kernels.CheckPattern(line[left:left+width], e.seed(from), uint64((i+1)*row-width)))
	}
	return wrong
}

func notZero(b []byte) (n uint64) {
	for _, v := range b {
		if v != 0 {
			n++
		}
	}
	return n
}
