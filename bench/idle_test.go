package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

const (
	idleFor   = 2 * time.Second
	idleLimit = 5.0 // percent of one core
	settling  = 100 * time.Millisecond
)

// BenchmarkIdle is the process's CPU time, in percent of one core, while
// everything waits: the engines of all queues at the gates of what is
// prepared, and then also, on every rank, a kernel for arrivals and the host in
// Wait.
func BenchmarkIdle(b *testing.B) {
	for _, ranks := range []int{2, 8} {
		for _, waiting := range []bool{false, true} {
			what := map[bool]string{false: "prepared", true: "waiting"}[waiting]
			b.Run(fmt.Sprintf("%s/ranks=%d", what, ranks), func(b *testing.B) { idle(b, ranks, waiting) })
		}
	}
}

var errMeasured = errors.New("measured")

func idle(b *testing.B, ranks int, waiting bool) {
	ctx, stop := context.WithCancelCause(context.Background())
	ready := make(chan struct{}, ranks)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, ranks, 1<<20, func(ctx context.Context, r *rank.Rank) error {
			p, handle, err := prepare(ctx, r)
			if err != nil {
				stop(err)
				return err
			}
			ready <- struct{}{}
			if !waiting {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			if err := r.Launch(awaitAll, kernels.Waits(kernels.Grid(1)), handle); err != nil {
				stop(err)
				return err
			}
			return p.Wait(ctx)
		})
	}()
	for range ranks {
		select {
		case <-ready:
		case err := <-ended:
			b.Fatal(err)
		}
	}
	time.Sleep(settling)
	runtime.GC()

	b.ResetTimer()
	before := cpuTime(b)
	for range b.N {
		time.Sleep(idleFor)
	}
	used := 100 * (cpuTime(b) - before).Seconds() / b.Elapsed().Seconds()
	b.StopTimer()
	stop(errMeasured)
	if err := <-ended; !errors.Is(err, errMeasured) {
		b.Fatal(err)
	}
	b.ReportMetric(used, "%core")
	if used > idleLimit {
		b.Errorf("%.2f%% of a core is used while everything waits; the limit is %v%%", used, idleLimit)
	}
}

// awaitAll is a kernel that waits for the chunks of all ranks.
var awaitAll = &kernels.Kernel{Name: "await_all", Go: func(t *hip.Thread) {
	v := kernels.NewView(t, t.Arg(0))
	for c := range v.Chunks() {
		v.Wait(c)
	}
}}

// prepare makes and starts a plan of 16 chunks from each rank.
func prepare(ctx context.Context, r *rank.Rank) (*plan.Plan, plan.Handle, error) {
	const chunks = 16
	out, err := r.Zeros(ctx, heap.Uint8, r.Size()*chunks, 1024)
	if err != nil {
		return nil, plan.Handle{}, err
	}
	s, err := schedule.Chunks(out.Rows(r.ID()*chunks, (r.ID()+1)*chunks).Window(), 1, schedule.Options{})
	if err != nil {
		return nil, plan.Handle{}, err
	}
	p, err := plan.New(ctx, r, out, s)
	if err != nil {
		return nil, plan.Handle{}, err
	}
	h, err := p.Start(ctx)
	return p, h, err
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
