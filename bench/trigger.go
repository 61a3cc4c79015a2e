package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

const (
	triggerBytes  = 4 << 10 // of a chunk
	triggerChunks = 200     // of a round: samples of a turn
	idleTime      = time.Millisecond
)

// trigger has rank 0's kernel mark a chunk and rank 1's wait for its arrival.
func trigger(s *suite) (err error) {
	chunks := shape{bytes: triggerBytes * triggerChunks, chunks: triggerChunks}.schedule(0)
	w, err := s.planned(2, triggerBytes*triggerChunks, func(r int) schedule.Schedule {
		return map[int]schedule.Schedule{0: chunks}[r]
	})
	if err != nil {
		return err
	}
	defer w.shut(&err)
	r := newWakeReference()
	defer r.stop()

	idle := func(busy bool) (ours, parked []float64, err error) {
		samples, err := takeTurns(s.turns(),
			func() (float64, error) { return w.trigger(idleTime, busy) },
			func() (float64, error) { return r.median(s.ctx, idleTime, busy) })
		if err != nil {
			return nil, nil, err
		}
		return samples[0], samples[1], nil
	}
	ours, parked, err := idle(false)
	if err != nil {
		return err
	}
	close, err := takeTurns(s.turns(),
		func() (float64, error) { return w.trigger(0, false) },
		func() (float64, error) { return r.median(s.ctx, 0, false) },
		func() (float64, error) { return pingPong(), nil })
	if err != nil {
		return err
	}
	results := []result{
		s.result("after 1 ms idle", "×parked goroutine", ratios(ours, parked)).atMost(2),
		s.result("after 1 ms idle", "µs", scaled(ours, 1e6)),
		s.result("parked goroutine after 1 ms idle", "µs", scaled(parked, 1e6)),
		s.result("chunks close together", "µs", scaled(close[0], 1e6)).atMost(5),
		s.result("chunks close together", "×goroutine by channel", ratios(close[0], close[1])),
		s.result("chunks close together", "×atomic ping-pong", ratios(close[0], close[2])),
	}
	if s.scope > brief {
		ours, parked, err := idle(true)
		if err != nil {
			return err
		}
		results = append(results,
			s.result("after 1 ms, all cores busy", "×parked goroutine", ratios(ours, parked)),
			s.result("after 1 ms, all cores busy", "µs", scaled(ours, 1e6)))
	}
	for _, r := range results {
		if err := s.emit(r); err != nil {
			return err
		}
	}
	return nil
}

// trigger is the median, in seconds, from the mark of a chunk on rank 0 to when
// rank 1's kernel knows of its arrival. Before every mark all is idle for a
// while.
func (w *world) trigger(idle time.Duration, busy bool) (float64, error) {
	n := triggerChunks
	if busy {
		n /= 10 // each may take as long as the scheduler lets a goroutine run
	}
	seen := make(chan time.Time, 1)
	took := make([]time.Duration, 0, n)
	mark := &kernels.Kernel{Name: "trigger", Go: func(t *hip.Thread) {
		v := kernels.NewView(t, t.Arg(0))
		if busy {
			defer keepBusy()()
		}
		for c := range n {
			if err := pause(t.Context(), idle); err != nil {
				t.Fail(err)
			}
			marked := time.Now()
			v.MarkReady(c)
			took = append(took, (<-seen).Sub(marked))
		}
		for c := n; c < triggerChunks; c++ {
			v.MarkReady(c)
		}
	}}
	see := &kernels.Kernel{Name: "see", Go: func(t *hip.Thread) {
		v := kernels.NewView(t, t.Arg(0))
		for c := range n {
			v.Wait(c)
			seen <- time.Now()
		}
	}}
	err := w.Run(w.ctx, func(ctx context.Context, r *rank.Rank) error {
		p := w.plans[r.ID()]
		if err := start(ctx, r, p, []*kernels.Kernel{mark, see}[r.ID()]); err != nil {
			return err
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		return p.NextRound(ctx)
	})
	return median(took), err
}

// keepBusy has a goroutine compute on every processor until it is told to
// stop.
func keepBusy() (stop func()) {
	var done atomic.Bool
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !done.Load() {
				compute(1000)
			}
		})
	}
	return func() { done.Store(true); all.Wait() }
}

// wakeReference is a parked goroutine that, woken, copies 4 KiB and wakes its
// caller, who has parked too.
type wakeReference struct {
	wake, woken chan struct{}
	dst, src    []byte
}

func newWakeReference() *wakeReference {
	r := &wakeReference{make(chan struct{}, 1), make(chan struct{}, 1), make([]byte, triggerBytes*triggerChunks), make([]byte, triggerBytes*triggerChunks)}
	go func() {
		at := 0
		for range r.wake {
			copy(r.dst[at:at+triggerBytes], r.src[at:at+triggerBytes])
			at = (at + triggerBytes) % len(r.src)
			r.woken <- struct{}{}
		}
		close(r.woken)
	}()
	return r
}

func (r *wakeReference) stop() {
	close(r.wake)
	<-r.woken
}

// median is the median, in seconds, of as many wake-ups as a round of trigger
// has chunks.
func (r *wakeReference) median(ctx context.Context, idle time.Duration, busy bool) (float64, error) {
	n := triggerChunks
	if busy {
		n /= 10
		defer keepBusy()()
	}
	took := make([]time.Duration, n)
	for i := range took {
		if err := pause(ctx, idle); err != nil {
			return 0, err
		}
		began := time.Now()
		r.wake <- struct{}{}
		<-r.woken
		took[i] = time.Since(began)
	}
	return median(took), nil
}

// pingPong is the seconds for which a word goes to another goroutine, which
// looks at it all the time, and back.
func pingPong() float64 {
	const n = 2000
	var word atomic.Uint64
	var other sync.WaitGroup
	other.Go(func() {
		for i := range uint64(n) {
			for word.Load() != 2*i+1 {
				runtime.Gosched()
			}
			word.Store(2*i + 2)
		}
	})
	began := time.Now()
	for i := range uint64(n) {
		word.Store(2*i + 1)
		for word.Load() != 2*i+2 {
			runtime.Gosched()
		}
	}
	took := time.Since(began)
	other.Wait()
	return took.Seconds() / n
}

// median is the median in seconds.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	return took[len(took)/2].Seconds()
}
