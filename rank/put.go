package rank

import (
	"context"
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

// PutOptions are what a Put does besides copying.
type PutOptions struct {
	// Signal, if not nil, is a tensor of 64-bit words: its first element on the
	// peer grows by 1 when the data is there.
	Signal *heap.Tensor
	// After, if not nil, is a tensor of 64-bit words: the copy waits until the
	// low 32 bits of its first element on this rank are at least Value.
	After *heap.Tensor
	Value uint32
}

// PutError says what is wrong with a Put.
type PutError struct {
	Rank, Peer int
	Why        string
	Err        error // the cause, or nil
}

func (e *PutError) Error() string {
	s := fmt.Sprintf("rank: Put from rank %d to rank %d: %s", e.Rank, e.Peer, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *PutError) Unwrap() error { return e.Err }

// checkPeer refuses a peer that is none, with a *PutError, and use of a closed
// world.
func (r *Rank) checkPeer(peer int) error {
	if peer < 0 || peer >= r.Size() || peer == r.id {
		return &PutError{Rank: r.id, Peer: peer, Why: fmt.Sprintf("the peer is another rank of the world, 0 to %d", r.Size()-1)}
	}
	return r.world.alive()
}

// Put has the copy engine copy src of this rank to dst of a peer, and returns
// before that is done: Quiet waits for it, and a Signal tells the peer. Both
// tensors have as many rows and bytes in a row; either may be a window of a
// larger one. Puts to a peer are carried in order. They are refused, with a
// *copyengine.ExclusionError, while a plan has copies prepared towards the
// peer, and wait under ctx for room on the queue. The tensors are kept until
// the data has been carried. The error is a *PutError if an argument is wrong,
// ErrClosed, or a *copyengine.FaultError if the queue has stopped.
func (r *Rank) Put(ctx context.Context, peer int, dst, src *heap.Tensor, o PutOptions) error {
	if err := r.checkPut(peer, dst, src, o); err != nil {
		return err
	}
	used := []*heap.Tensor{dst, src}
	step := copyengine.Step{Copies: r.putCopies(dst.At(peer), src.At(r.id))}
	if o.Signal != nil {
		step.Signal = o.Signal.At(peer).Addr()
		used = append(used, o.Signal)
	}
	var flag func()
	if o.After != nil {
		step.Gate = o.After.At(r.id).Addr()
		used = append(used, o.After)
		at := o.After.Block().Offset() + o.After.Offset()
		flag = func() { raise(r.Memory(), at, o.Value) }
	}
	q := r.queues[peer]
	program, err := q.Compile(copyengine.Chain{step})
	if err != nil {
		return err
	}
	program.SetRound(o.Value)
	for i, t := range used {
		if err := t.Block().Hold(); err != nil {
			release(used[:i])
			return err
		}
	}
	done := func(lost error) {
		release(used)
		r.lost[peer].note(lost)
	}
	err = q.Put(ctx, hip.NewWaiter(), copyengine.Put{World: r.world.name, Program: program, Flag: flag, Done: done})
	if err != nil {
		release(used)
	}
	return err
}

// raise stores v in the word at off unless it is there already. A device that
// is lost has faulted the queue, which then waits for nothing.
func raise(m *hip.Memory, off int64, v uint32) {
	if have, err := m.LoadWord(off); err == nil && uint32(have) < v {
		_ = m.StoreWord(off, uint64(v))
	}
}

func release(ts []*heap.Tensor) {
	for _, t := range ts {
		t.Block().Release()
	}
}

func (r *Rank) checkPut(peer int, dst, src *heap.Tensor, o PutOptions) error {
	fail := func(format string, args ...any) error {
		return &PutError{Rank: r.id, Peer: peer, Why: fmt.Sprintf(format, args...)}
	}
	if err := r.checkPeer(peer); err != nil {
		return err
	}
	for _, t := range []struct {
		name string
		t    *heap.Tensor
		word bool
		need bool
	}{{"dst", dst, false, true}, {"src", src, false, true}, {"Signal", o.Signal, true, false}, {"After", o.After, true, false}} {
		if t.t == nil && !t.need {
			continue
		}
		if err := r.Check(t.t); err != nil {
			return &PutError{Rank: r.id, Peer: peer, Why: t.name, Err: err}
		}
		if t.t.Len() == 0 {
			return fail("%s has no elements", t.name)
		}
		if t.word && t.t.DType().Size() != 8 {
			return fail("%s has elements of type %v; it is a tensor of 64-bit words", t.name, t.t.DType())
		}
	}
	d, s := dst.Window(), src.Window()
	if d.Rows*d.Cols*d.Elem != s.Rows*s.Cols*s.Elem || (d.Rows != s.Rows && !(dst.Contiguous() && src.Contiguous())) {
		return fail("dst has %d rows of %d bytes, src %d of %d; they must have the same", d.Rows, d.Cols*d.Elem, s.Rows, s.Cols*s.Elem)
	}
	return nil
}

// putCopies is one window, or as many linear copies as the device needs.
func (r *Rank) putCopies(dst, src *heap.Tensor) []copyengine.Copy {
	d, s := dst.Window(), src.Window()
	if !dst.Contiguous() || !src.Contiguous() {
		return []copyengine.Copy{{
			Src: src.Addr(), Dst: dst.Addr(), Width: int64(s.Cols * s.Elem), Height: int64(s.Rows), SrcPitch: s.Pitch, DstPitch: d.Pitch,
		}}
	}
	return pieces(src.Addr(), dst.Addr(), src.Size(), r.device.Properties().LargestCopy)
}

// pieces is one range of bytes in copies of at most so many.
func pieces(src, dst uint64, n, most int64) (copies []copyengine.Copy) {
	for off := int64(0); off < n; off += most {
		w := min(most, n-off)
		copies = append(copies, copyengine.Copy{
			Src: src + uint64(off), Dst: dst + uint64(off), Width: w, Height: 1, SrcPitch: w, DstPitch: w,
		})
	}
	return copies
}

// Quiet waits until everything that this rank has put to a peer before it is
// there. Like Put it is refused while a plan has copies prepared towards the
// peer. If some of it was lost, because the queue stopped, the error says so
// once.
func (r *Rank) Quiet(ctx context.Context, peer int) error {
	if err := r.checkPeer(peer); err != nil {
		return err
	}
	err := r.queues[peer].Quiet(ctx, hip.NewWaiter())
	return errors.Join(err, r.lost[peer].take())
}
