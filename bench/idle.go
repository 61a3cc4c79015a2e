package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// idle is the process's CPU time, in percent of one core, while everything
// waits: the engines of all queues at the gates of what is prepared, and then
// also, on every rank, a kernel for arrivals and the host in Wait.
func idle(s *suite) error {
	for _, ranks := range pick(s, []int{2}, []int{2, 8}, []int{2, 8, 32}) {
		for _, waiting := range []bool{false, true} {
			name := fmt.Sprintf("%d queues wait", ranks*(ranks-1))
			if waiting {
				name += ", and kernels, and hosts"
			}
			used, err := s.idle(ranks, waiting)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := s.emit(s.result(name, "% of a core", used).atMost(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// errMeasured ends what waits.
var errMeasured = errors.New("measured")

const settling = 100 * time.Millisecond

func (s *suite) idle(ranks int, waiting bool) (used []float64, err error) {
	sh := shape{ranks: ranks, bytes: 16 << 10, chunks: 16}
	w, err := s.planned(ranks, sh.total(), sh.schedule)
	if err != nil {
		return nil, err
	}
	defer w.shut(&err)
	ctx, stop := context.WithCancelCause(s.ctx)
	defer stop(nil)
	started, ended := make(chan struct{}, ranks), make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			p := w.plans[r.ID()]
			h, err := p.Start(ctx)
			if err != nil {
				return err
			}
			if !waiting {
				started <- struct{}{}
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if err := r.Launch(awaitAll, kernels.Waits(kernels.Grid(1)), h); err != nil {
				return err
			}
			started <- struct{}{}
			return p.Wait(ctx)
		})
	}()
	for range ranks {
		select {
		case <-started:
		case err := <-ended:
			return nil, err
		}
	}
	err = pause(s.ctx, settling)
	runtime.GC()
	for turn := 0; turn < s.turns() && err == nil; turn++ {
		var share float64
		share, err = idleShare(s.ctx, pick[time.Duration](s, 100, 300, 1000)*time.Millisecond)
		used = append(used, share)
	}
	stop(errMeasured)
	if last := <-ended; !errors.Is(last, errMeasured) {
		err = last
	}
	return used, err
}

// awaitAll is a kernel that waits for the chunks of all ranks.
var awaitAll = &kernels.Kernel{Name: "await_all", Go: func(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	for c := range v.Chunks() {
		v.Wait(c)
	}
}}

// idleShare is the CPU time of the process while d passes, in percent of it.
func idleShare(ctx context.Context, d time.Duration) (float64, error) {
	began, before := time.Now(), cpuTime()
	err := pause(ctx, d)
	return 100 * (cpuTime() - before).Seconds() / time.Since(began).Seconds(), err
}

// cpuTime is what the process has used so far.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0 // which only a wrong argument gives
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
