package kernels

import (
	"context"
	"errors"

	"github.com/triggeredplans/sluice/hip"
)

// Copy is a copy that a kernel starts itself, to a peer. Src is an address on
// the kernel's rank; Dst and Signal are addresses on it too, and stand for the
// same places on the peer.
type Copy struct {
	Src, Dst           uint64
	Width, Height      int64  // bytes, rows
	SrcPitch, DstPitch int64  // bytes; unused with one row
	Signal             uint64 // a word that grows by 1 when the data is there; 0 is none
}

// Copier carries the copies that kernels start. They go over queues of their
// own, whatever plans have prepared on the host's.
type Copier interface {
	Put(ctx context.Context, peer int, c Copy) error
	Quiet(ctx context.Context, peer int) error
}

// ErrNoCopier says that a kernel was launched without a way to start copies.
var ErrNoCopier = errors.New("kernels: the launch has no copier; launch the kernel through its rank")

// Put starts a copy to a peer, after everything that the CTA has written. The
// whole CTA calls it.
func (v *View) Put(peer int, c Copy) {
	v.t.Barrier()
	if v.t.Index == 0 {
		v.carry(func(to Copier) error { return to.Put(v.t.Context(), peer, c) })
	}
}

// Quiet waits until the copies that kernels of the rank have started to a peer
// are there. The whole CTA calls it.
func (v *View) Quiet(peer int) {
	if v.t.Index == 0 {
		v.carry(func(to Copier) error { return to.Quiet(v.t.Context(), peer) })
	}
	v.t.Barrier()
}

// carry fails the kernel with do's error.
func (v *View) carry(do func(Copier) error) {
	to, ok := v.t.Env().(Copier)
	if !ok {
		v.t.Fail(ErrNoCopier)
	}
	if err := do(to); err != nil {
		v.t.Fail(err)
	}
}

// PutView is a view for a kernel that only puts, and has no plan.
func PutView(t *hip.Thread) View { return View{t: t} }
