package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// Memory has the words first, then what is copied.
const (
	gateAt   = 0
	signalAt = 64
	dataAt   = 4096
)

// windowPitch and windowWidth are of the window that is copied.
const (
	windowPitch = 256
	windowWidth = 192
)

func (p *prober) room() int64 { return dataAt + int64(p.bytes) }

// patience is how long one thing on a queue may take.
const patience = 10 * time.Second

// try sends everything over the queue of one pair.
func (p *prober) try(ctx context.Context, from, to *end) pair {
	got := pair{From: from.at.String(), To: to.at.String()}
	began := time.Now()
	q, err := p.node.Acquire(ctx, from.dev, from.at, to.at) // which sends a fence
	if err != nil {
		got.Error = err.Error()
		return got
	}
	defer p.node.Release(q)
	got.Fence, got.Engine = micros(time.Since(began)), q.Engine()
	t := &trial{prober: p, queue: q, from: from, to: to, waiter: hip.NewWaiter()}
	for _, step := range []struct {
		name string
		took *float64
		once func(context.Context, uint64) (time.Duration, error)
	}{
		{"copy", &got.Copy, t.copy},
		{"window", &got.Window, t.window},
		{"triggered chunk", &got.Chunk, t.chunk},
	} {
		if *step.took, err = t.often(ctx, step.once); err != nil {
			got.Error = fmt.Sprintf("%s: %v", step.name, err)
			return got
		}
	}
	return got
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// trial is the queue of one pair at work.
type trial struct {
	*prober
	queue    *copyengine.Queue
	from, to *end
	waiter   *hip.Waiter
	round    uint64
}

// often does something in every round and returns the median time it took.
func (t *trial) often(ctx context.Context, once func(context.Context, uint64) (time.Duration, error)) (float64, error) {
	var took []time.Duration
	for range t.rounds {
		ctx, cancel := context.WithTimeout(ctx, patience)
		t.round++
		d, err := once(ctx, t.round)
		cancel()
		if err != nil {
			return 0, fmt.Errorf("round %d: %w", t.round, err)
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return micros(took[len(took)/2]), nil
}

// linear is one run of bytes.
func (t *trial) linear() copyengine.Copy {
	n := int64(t.bytes)
	return copyengine.Copy{Src: t.from.memory.Addr() + dataAt, Dst: t.to.memory.Addr() + dataAt, Width: n, Height: 1, SrcPitch: n, DstPitch: n}
}

// rows is rows with gaps.
func (t *trial) rows() copyengine.Copy {
	c := t.linear()
	c.Width, c.Height, c.SrcPitch, c.DstPitch = windowWidth, int64(t.bytes)/windowPitch, windowPitch, windowPitch
	return c
}

func (t *trial) copy(ctx context.Context, round uint64) (time.Duration, error) {
	return t.carry(ctx, round, t.linear())
}

func (t *trial) window(ctx context.Context, round uint64) (time.Duration, error) {
	return t.carry(ctx, round, t.rows())
}

// carry sends one copy and waits for it.
func (t *trial) carry(ctx context.Context, round uint64, c copyengine.Copy) (time.Duration, error) {
	if err := t.fill(round); err != nil {
		return 0, err
	}
	program, err := t.queue.Compile(copyengine.Chain{{Copies: []copyengine.Copy{c}}})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := t.queue.Put(ctx, t.waiter, copyengine.Put{World: name, Program: program}); err != nil {
		return 0, err
	}
	if err := t.queue.Quiet(ctx, t.waiter); err != nil {
		return 0, err
	}
	return time.Since(began), t.check(round, c)
}

// chunk prepares a copy behind a closed gate, sees that it stays there, opens
// the gate and waits for the signal.
func (t *trial) chunk(ctx context.Context, round uint64) (time.Duration, error) {
	words := make([]uint64, 1)
	if err := errors.Join(t.fill(round), t.from.memory.StoreWords(gateAt, 8, []uint64{round - 1}), t.to.memory.LoadWords(signalAt, 8, words)); err != nil {
		return 0, err
	}
	before := words[0]
	program, err := t.queue.Compile(copyengine.Chain{{
		Gate: t.from.memory.Addr() + gateAt, Copies: []copyengine.Copy{t.linear()}, Signal: t.to.memory.Addr() + signalAt,
	}})
	if err != nil {
		return 0, err
	}
	program.SetRound(uint32(round))
	flag := func() { _ = t.from.memory.StoreWords(gateAt, 8, []uint64{round}) } // an error shows in the wait
	if err := t.queue.Put(ctx, t.waiter, copyengine.Put{World: name, Program: program, Flag: flag}); err != nil {
		return 0, err
	}
	early, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
	err = t.await(early, before+1)
	cancel()
	if err == nil {
		return 0, errors.New("the gate is closed, and the signal has come")
	}
	began := time.Now()
	flag()
	if err := t.await(ctx, before+1); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := t.queue.Quiet(ctx, t.waiter); err != nil {
		return 0, err
	}
	return took, t.check(round, t.linear())
}

// await waits for the peer's signal.
func (t *trial) await(ctx context.Context, want uint64) error {
	m, w, v := t.to.memory, hip.NewWaiter(), make([]uint64, 1)
	m.Watch(w, signalAt)
	defer w.Unwatch()
	for {
		if err := m.LoadWords(signalAt, 8, v); err != nil {
			return err
		}
		if v[0] == want {
			return nil
		}
		if err := w.Park(ctx); err != nil {
			return fmt.Errorf("the signal is %d, want %d: %w", v[0], want, err)
		}
	}
}

// fill writes the round's data at the source and clears the destination.
func (t *trial) fill(round uint64) error {
	b := make([]byte, t.bytes)
	kernels.FillPattern(b, kernels.SeedOf(0x5d3a, t.from.at.Device, round), 0)
	return errors.Join(t.from.memory.WriteAt(b, dataAt), t.to.memory.Clear(dataAt, int64(t.bytes)))
}

// check compares what has come: what the copy moves is the round's data, and
// what lies between its rows is still zero.
func (t *trial) check(round uint64, c copyengine.Copy) error {
	got, want := make([]byte, t.bytes), make([]byte, t.bytes)
	if err := t.to.memory.ReadAt(got, dataAt); err != nil {
		return err
	}
	kernels.FillPattern(want, kernels.SeedOf(0x5d3a, t.from.at.Device, round), 0)
	wrong := 0
	for i := range got {
		moved := int64(i)%c.SrcPitch < c.Width && int64(i)/c.SrcPitch < c.Height
		if moved && got[i] != want[i] || !moved && got[i] != 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d bytes are wrong", wrong, t.bytes)
	}
	return nil
}
