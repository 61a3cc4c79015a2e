package main

import (
	"context"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// elem is the size of a bfloat16.
const elem = example.Elem

// margin is how many columns around a window nothing is put to.
const margin = 24

// seed sets this program's data apart from others'.
const seed = 0x9c7

// exchange is one rank's side of everybody putting to everybody.
type exchange struct {
	p    *putQuiet
	rank *rank.Rank
	done uint64 // exchanges so far

	rows  *heap.Tensor // what the rank puts
	inbox *heap.Tensor // the rows of each rank
	panes *heap.Tensor // a window of the rows of each rank, with a margin

	flag    *heap.Tensor // the round for which the rows are written
	signals *heap.Tensor // a count for each rank that puts here

	produce, consume *heap.Tensor // programs of the script kernel
	errors           *heap.Tensor // the consumer's error row
	stream           *rank.Stream // for the consumer
}

// scriptWords is room for the script of one CTA.
const scriptWords = 32

// newExchange is collective.
func (p *putQuiet) newExchange(ctx context.Context, r *rank.Rank) (*exchange, error) {
	e := &exchange{p: p, rank: r}
	n := r.Size()
	for _, t := range []struct {
		to    **heap.Tensor
		dtype heap.DType
		shape []int
	}{
		{&e.rows, heap.BFloat16, []int{p.rows, p.cols}},
		{&e.inbox, heap.BFloat16, []int{n * p.rows, p.cols}},
		{&e.panes, heap.BFloat16, []int{n * p.rows, p.window() + margin}},
		{&e.flag, heap.Uint64, []int{1}},
		{&e.signals, heap.Uint64, []int{n}},
		{&e.produce, heap.Uint64, []int{scriptWords}},
		{&e.consume, heap.Uint64, []int{n * scriptWords}},
		{&e.errors, heap.Uint64, []int{kernels.ErrorRow / 8}},
	} {
		var err error
		if *t.to, err = r.Zeros(ctx, t.dtype, t.shape...); err != nil {
			return nil, err
		}
	}
	var err error
	e.stream, err = r.NewStream()
	return e, err
}

// slot is where the rows of a rank go.
func (e *exchange) slot(of int) *heap.Tensor {
	return e.inbox.Rows(of*e.p.rows, (of+1)*e.p.rows)
}

// pane is where the window of a rank's rows goes.
func (e *exchange) pane(of int) *heap.Tensor {
	return e.panes.Rows(of*e.p.rows, (of+1)*e.p.rows).Cols(margin/2, margin/2+e.p.window())
}

// window is the part of the rows that is put as one.
func (e *exchange) window() *heap.Tensor { return e.rows.Cols(e.p.cols-e.p.window(), e.p.cols) }

// signal is what a rank's puts add to.
func (e *exchange) signal(of int) *heap.Tensor { return e.signals.Rows(of, of+1) }

// putsPerPeer is how often each rank signals to each other in an exchange.
const putsPerPeer = 2

// seed is that of a rank's data in the exchange that is going on.
func (e *exchange) seed(of int) uint64 { return kernels.SeedOf(seed, of, e.done+1) }

// exchange has the rank's rows put to everybody in the way given, and waits
// until all are there: those that it put, and those that it gets.
func (e *exchange) exchange(ctx context.Context, round int, way func(context.Context, uint64) error) error {
	r := e.rank
	consumer := e.consumer().Words()
	if err := heap.Write(e.consume.Rows(0, len(consumer)), consumer); err != nil {
		return err
	}
	if err := e.stream.Launch(kernels.Script, kernels.Waits(kernels.Grid(r.Size())), 0, e.consume); err != nil {
		return err
	}
	if err := way(ctx, uint64(round)); err != nil {
		return err
	}
	for from := range r.Size() {
		if from == r.ID() {
			continue
		}
		if err := r.Await(ctx, e.signals, from, putsPerPeer*(e.done+1)); err != nil {
			return err
		}
	}
	return r.Sync(ctx)
}

// hostPuts puts first and has the rows written then.
func (e *exchange) hostPuts(ctx context.Context, round uint64) error {
	r := e.rank
	for peer := range r.Size() {
		if peer == r.ID() {
			continue
		}
		err := r.Put(ctx, peer, e.slot(r.ID()), e.rows, rank.PutOptions{Signal: e.signal(r.ID()), After: e.flag, Value: uint32(round)})
		if err != nil {
			return err
		}
		// Puts to a peer go in order, so this one needs no flag.
		if err := r.Put(ctx, peer, e.pane(r.ID()), e.window(), rank.PutOptions{Signal: e.signal(r.ID())}); err != nil {
			return err
		}
	}
	if err := e.launchProducer(round); err != nil {
		return err
	}
	for peer := range r.Size() {
		if peer == r.ID() {
			continue
		}
		if err := r.Quiet(ctx, peer); err != nil {
			return err
		}
	}
	return nil
}

// launchProducer has the rows written, and then the flag.
func (e *exchange) launchProducer(flag uint64) error {
	producer := e.producer(flag).Words()
	if err := heap.Write(e.produce.Rows(0, len(producer)), producer); err != nil {
		return err
	}
	return e.rank.Launch(kernels.Script, kernels.Grid(1), 0, e.produce)
}

// canPut says whether kernels start copies on the rank's device. Those that do
// are Go functions.
func canPut(r *rank.Rank) bool { return r.Device().Properties().Arch == "go" }

// kernelPuts has a kernel put the rows, behind the one that writes them.
func (e *exchange) kernelPuts(_ context.Context, round uint64) error {
	r := e.rank
	if r.Size() == 1 {
		return nil
	}
	if err := e.launchProducer(round); err != nil {
		return err
	}
	s, w, d := e.rows.Window(), e.window().Window(), e.pane(r.ID()).Window()
	put := &kernels.Kernel{Name: "put", Go: func(t *hip.Thread) {
		peer := (r.ID() + 1 + t.Block) % t.Blocks
		if peer == r.ID() {
			return
		}
		// Addresses on this rank stand for the same places on the peer.
		v := kernels.PutView(t)
		bytes := int64(s.Cols*s.Elem) * int64(s.Rows)
		v.Put(peer, kernels.Copy{Src: t.Arg(0), Dst: t.Arg(1), Width: bytes, Height: 1, Signal: t.Arg(4)})
		v.Put(peer, kernels.Copy{Src: t.Arg(2), Dst: t.Arg(3), Width: int64(w.Cols * w.Elem), Height: int64(w.Rows), SrcPitch: w.Pitch, DstPitch: d.Pitch, Signal: t.Arg(4)})
		v.Quiet(peer)
	}}
	return r.Launch(put, kernels.Grid(r.Size()), e.rows, e.slot(r.ID()), e.window(), e.pane(r.ID()), e.signal(r.ID()))
}

// producer is the script that writes the rows, and then the flag.
func (e *exchange) producer(flag uint64) *kernels.Program {
	p := kernels.NewProgram(1)
	p.On(0).Fill(e.rows.Addr(), e.region(), e.seed(e.rank.ID())).Store(e.flag.Addr(), flag)
	return p
}

// consumer is the script that checks each rank's rows when its puts have come.
func (e *exchange) consumer() *kernels.Program {
	p := kernels.NewProgram(e.rank.Size())
	for from := range e.rank.Size() {
		if from != e.rank.ID() {
			p.On(from).Await(e.signal(from).Addr(), putsPerPeer*(e.done+1)).
				Check(e.slot(from).Addr(), e.region(), e.seed(from), e.errors.Addr())
		}
	}
	return p
}

// region is the rows, from their own start.
func (e *exchange) region() kernels.Region {
	w := e.rows.Window()
	return kernels.Region{Width: int64(w.Cols * w.Elem), Height: int64(w.Rows), Pitch: w.Pitch}
}
