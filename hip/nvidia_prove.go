//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"context"
	"errors"
	"time"
)

// proof shows that kernels run and words are written while the queues of a
// device wait at a gate: that no two of its streams share a connection.
type proof struct {
	device  *nvidiaDevice
	gate    deviceWord
	through []deviceWord // written by the queues behind the gate
	ran     []deviceWord // written by the kernels
}

// proofPatience is how long each of the two steps may take.
const proofPatience = time.Second

// What the words of a proof go from and to.
const (
	probeClosed = 0
	probeOpen   = 1
	probeUnset  = ^uint64(0)
)

func (p *proof) run(ctx context.Context, probe *Function) error {
	d := p.device
	d.proving.Lock() // streams that are given back meanwhile wait
	defer d.proving.Unlock()
	queues, streams := d.idle()
	if err := p.warmUp(ctx, streams, probe); err != nil {
		return err
	}
	p.gate = d.words.take(probeClosed)
	if err := p.arm(queues, streams, probe); err != nil {
		p.end(ctx)
		return err
	}
	ran := p.await(ctx, p.ran, func(v uint64) bool { return v == 0 })
	opened := d.control.writeWord(p.gate.addr, probeOpen)
	through := p.await(ctx, p.through, func(v uint64) bool { return v == probeOpen })
	p.end(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ran != nil:
		return &ProveError{Device: d.Name(), What: "a kernel did not run", After: proofPatience, Queues: len(queues)}
	case opened != nil:
		return opened
	case through != nil:
		return &ProveError{Device: d.Name(), What: "a queue did not go on when its gate was opened", After: proofPatience, Queues: len(queues)}
	}
	return nil
}

// warmUpPatience is for what a tool that watches the process does with a kernel
// before it runs first.
const warmUpPatience = 30 * time.Second

// warmUp runs the kernel once while nothing waits.
func (p *proof) warmUp(ctx context.Context, streams []*nvidiaStream, probe *Function) error {
	ctx, cancel := context.WithTimeout(ctx, warmUpPatience)
	defer cancel()
	for _, s := range streams[:min(len(streams), 1)] {
		w := p.device.words.take(probeUnset)
		if err := errors.Join(p.launch(s, probe, w), s.Sync(ctx)); err != nil && !errors.Is(err, ErrClosed) {
			return err
		}
		p.device.words.put(w)
	}
	return nil
}

// launch has the kernel write a word, which becomes 0: evaluate(out, steps, a,
// b, c).
func (p *proof) launch(s *nvidiaStream, probe *Function, w deviceWord) error {
	return s.Launch(Launch{Func: probe, Grid: Grid{Blocks: 1, Threads: 1}, Args: []Arg{U64(w.addr), U64(1), U64(1), U64(1), U64(1)}})
}

// idle are the streams in use that have nothing to do.
func (d *nvidiaDevice) idle() (queues []*nvidiaQueue, streams []*nvidiaStream) {
	for _, w := range d.workers() {
		switch w := w.(type) {
		case *nvidiaQueue:
			if !w.reclaim() && w.idle() {
				queues = append(queues, w)
			}
		case *nvidiaStream:
			if w.Idle() && w.Err() == nil {
				streams = append(streams, w)
			}
		}
	}
	return queues, streams
}

// arm has every queue wait at the gate, and then launches a kernel on every
// stream.
func (p *proof) arm(queues []*nvidiaQueue, streams []*nvidiaStream, probe *Function) error {
	d := p.device
	for _, q := range queues {
		w := d.words.take(probeClosed)
		p.through = append(p.through, w)
		if err := d.checkFor("queue "+q.name, C.cuda_wait(d.c, q.stream, C.cuda_ptr(p.gate.addr), probeOpen)); err != nil {
			return err
		}
		if err := d.checkFor("queue "+q.name, C.cuda_write(d.c, q.stream, C.cuda_ptr(w.addr), probeOpen)); err != nil {
			return err
		}
	}
	for _, s := range streams {
		w := d.words.take(probeUnset)
		err := p.launch(s, probe, w)
		switch {
		case errors.Is(err, ErrClosed): // its world is closing
			d.words.put(w)
		case err != nil:
			return err
		default:
			p.ran = append(p.ran, w)
		}
	}
	return nil
}

func (p *proof) await(ctx context.Context, words []deviceWord, done func(uint64) bool) error {
	ctx, cancel := context.WithTimeout(ctx, proofPatience)
	defer cancel()
	w := NewWaiter()
	for _, word := range words {
		if err := w.Await(ctx, word.Word, done, nil); err != nil {
			return err
		}
	}
	return nil
}

// end opens the gate without the device's help, and gives back the words that
// nobody writes any more.
func (p *proof) end(ctx context.Context) {
	p.gate.Store(probeOpen)
	ctx = context.WithoutCancel(ctx)
	through := p.await(ctx, p.through, func(v uint64) bool { return v == probeOpen })
	ran := p.await(ctx, p.ran, func(v uint64) bool { return v == 0 })
	if through != nil || ran != nil {
		return
	}
	for _, w := range append(append(p.through, p.ran...), p.gate) {
		p.device.words.put(w)
	}
}
