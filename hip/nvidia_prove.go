//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"context"
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
	d.reclaim()
	d.proving.Lock() // streams that are given back meanwhile wait
	defer d.proving.Unlock()
	if err := p.warmUp(ctx, probe); err != nil {
		return err
	}
	// Until the proof has ended nobody else gives the device work, behind which
	// the proof would wait for a gate that is not its own, or makes a call that
	// would wait for the proof's.
	d.platform.calm.Lock()
	defer d.platform.calm.Unlock()
	p.gate = d.words.take(probeClosed)
	queues, err := p.arm(probe)
	if err != nil {
		p.end(ctx)
		return err
	}
	ran := p.await(ctx, p.ran, func(v uint64) bool { return v == 0 })
	var opened, through error
	if ran == nil {
		opened = d.control.writeWord(p.gate.addr, probeOpen)
		through = p.await(ctx, p.through, func(v uint64) bool { return v == probeOpen })
	}
	p.end(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ran != nil:
		return &ProveError{Device: d.Name(), What: "a kernel did not run", After: proofPatience, Queues: queues}
	case opened != nil:
		return opened
	case through != nil:
		return &ProveError{Device: d.Name(), What: "a queue did not go on when its gate was opened", After: proofPatience, Queues: queues}
	}
	return nil
}

// warmUpPatience is for what a tool that watches the process does with a kernel
// before it runs first.
const warmUpPatience = 30 * time.Second

// warmUp runs the kernel once while nothing of the proof waits.
func (p *proof) warmUp(ctx context.Context, probe *Function) error {
	within, cancel := context.WithTimeout(ctx, warmUpPatience)
	defer cancel()
	w := p.device.words.take(probeUnset)
	s, n, err := p.first(p.launch(probe, w))
	if err == nil && n > 0 {
		err = s.await(within, n)
	}
	switch {
	case err == nil:
		p.device.words.put(w)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return &ProveError{Device: p.device.Name(), What: "a kernel did not run", After: warmUpPatience}
	}
	return err
}

// first launches on a stream that has nothing to do, if there is one, and tells
// the number of the launch.
func (p *proof) first(l Launch) (s *nvidiaStream, n uint64, err error) {
	calm := &p.device.platform.calm
	calm.Lock()
	defer calm.Unlock()
	for _, o := range p.device.workers() {
		s, ok := o.(*nvidiaStream)
		if !ok {
			continue
		}
		if n, err := s.launchIfIdle(l); n > 0 || err != nil {
			return s, n, err
		}
	}
	return nil, 0, nil
}

// launch has the kernel write a word, which becomes 0: evaluate(out, steps, a,
// b, c).
func (p *proof) launch(probe *Function, w deviceWord) Launch {
	return Launch{Func: probe, Grid: Grid{Blocks: 1, Threads: 1}, Args: []Arg{U64(w.addr), U64(1), U64(1), U64(1), U64(1)}}
}

// arm has every queue that has nothing to do wait at the gate, and then launches
// a kernel on every such stream. It reports how many queues wait.
func (p *proof) arm(probe *Function) (queues int, err error) {
	d := p.device
	workers := d.workers()
	for _, o := range workers {
		q, ok := o.(*nvidiaQueue)
		if !ok || !q.idle() {
			continue
		}
		w := d.words.take(probeClosed)
		p.through = append(p.through, w)
		if err := d.checkFor("queue "+q.name, C.cuda_wait(d.c, q.stream, C.cuda_ptr(p.gate.addr), probeOpen)); err != nil {
			return queues, err
		}
		queues++
		if err := d.checkFor("queue "+q.name, C.cuda_write(d.c, q.stream, C.cuda_ptr(w.addr), probeOpen)); err != nil {
			return queues, err
		}
	}
	for _, o := range workers {
		s, ok := o.(*nvidiaStream)
		if !ok {
			continue
		}
		w := d.words.take(probeUnset)
		n, err := s.launchIfIdle(p.launch(probe, w))
		switch {
		case err != nil:
			return queues, err
		case n > 0:
			p.ran = append(p.ran, w)
		default:
			d.words.put(w)
		}
	}
	return queues, nil
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
