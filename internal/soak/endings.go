package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// ending is how all ranks of a world end, because of something that happens to
// one of them or to their context.
type ending struct {
	kind   string
	breaks bool // the world cannot run again
	come   func(context.Context, *actor) error
	fits   func(error) bool // what Run returns
}

var (
	errDied      = errors.New("the body has not returned")
	errCancelled = errors.New("cancelled")
	errEndless   = errors.New("nothing has ended the rank")
)

var (
	killed = ending{kind: "a rank that is killed", come: dieAnywhere, fits: func(err error) bool {
		return errors.Is(err, errInjected) || errors.Is(err, rank.ErrGoexit) || isA[*rank.GoneError](err)
	}}
	endings = []*ending{
		&killed,
		{kind: "a rank that is killed at a step", come: dieAtStep, fits: killed.fits},
		{kind: "a context that is cancelled", come: beCancelled, fits: func(err error) bool { return errors.Is(err, errCancelled) }},
		{kind: "a kernel that fails", breaks: true, come: failKernel, fits: func(err error) bool { return isA[*hip.KernelError](err) }},
	}
)

// survived says that all ranks have ended as they must.
func (e *ending) survived(v *venue, err error) error {
	if !e.fits(err) {
		return fmt.Errorf("%s: Run returns %v", e.kind, err)
	}
	for _, a := range v.actors {
		if a.err == nil && !a.left || errors.Is(a.err, errEndless) || errors.Is(a.err, errWrong) {
			return fmt.Errorf("%s: rank %d ends with %v", e.kind, a.id, a.err)
		}
	}
	v.b.d.strike.Store(nil)
	v.b.soak.tally.survive(e.kind)
	return nil
}

// goOn opens and closes plans and runs rounds until something fails.
func (a *actor) goOn(ctx context.Context, before func(i int) error) error {
	for i := range 10000 {
		if err := before(i); err != nil {
			return err
		}
		if err := a.atLeast(ctx, 1); err != nil {
			return err
		}
		do := a.closeOne
		switch a.common.IntN(8) {
		case 0:
		case 1:
			do = a.openOne
		default:
			do = func(ctx context.Context) error { return a.step(ctx, 1+a.common.IntN(len(a.open))) }
		}
		if err := do(ctx); err != nil {
			return err
		}
	}
	return errEndless
}

// dieAnywhere ends one rank's body between two calls.
func dieAnywhere(ctx context.Context, a *actor) error {
	victim, when, way := a.common.IntN(a.v.ranks), a.common.IntN(20), pick(a.common, append(ways, "return")...)
	if a.v.ranks == 1 && way == "return" {
		way = "error"
	}
	a.brief = way == "return"
	err := a.goOn(ctx, func(i int) error {
		if a.id != victim || i != when {
			return nil
		}
		switch way {
		case "panic":
			panic(errInjected)
		case "Goexit":
			runtime.Goexit()
		case "return":
			return rank.ErrReturned
		}
		return errInjected
	})
	if err == rank.ErrReturned {
		a.left = true
		return nil
	}
	return err
}

// dieAtStep ends one rank inside a call.
func dieAtStep(ctx context.Context, a *actor) error {
	g := a.rigs[0]
	s := a.stepOf(g, inject.Start, inject.Wait, inject.HandBack, inject.Close, inject.Validate, inject.Gates, inject.Encode, inject.Reserve, inject.Ring)
	s.way = pick(a.common, ways...)
	s.after.Add(int64(a.common.IntN(4)))
	if err := a.r.Barrier(ctx); err != nil {
		return err
	}
	if a.id == 0 {
		a.v.b.d.strike.Store(s)
	}
	return a.goOn(ctx, func(int) error { return nil })
}

// beCancelled ends the ranks' context.
func beCancelled(ctx context.Context, a *actor) error {
	if a.id == 0 {
		cancel := time.AfterFunc(time.Duration(a.own.IntN(5000))*time.Microsecond, func() { a.cancel(errCancelled) })
		defer cancel.Stop()
	}
	return a.goOn(ctx, func(int) error { return nil })
}

// failKernel has one rank launch a kernel that does not end well.
func failKernel(ctx context.Context, a *actor) error {
	victim, when := a.common.IntN(a.v.ranks), a.common.IntN(10)
	bad := &kernels.Kernel{Name: "bad", Go: pick(a.common,
		func(*hip.Thread) { panic(errInjected) },
		func(*hip.Thread) { runtime.Goexit() },
		func(t *hip.Thread) { t.Fail(errInjected) },
		func(t *hip.Thread) { t.Bytes(8, 1<<20) },
	)}
	return a.goOn(ctx, func(i int) error {
		if a.id == victim && i == when {
			return a.r.Launch(bad, kernels.Grid(1))
		}
		return nil
	})
}
