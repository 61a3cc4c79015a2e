package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/rank"
)

// patience bounds a bout: one that takes longer hangs.
const patience = 2 * time.Minute

// bout is a node with a world on it, or two that share its queues.
type bout struct {
	soak   *soak
	number uint64
	rnd    *rand.Rand
	node   *rank.Node
	d      disturbance

	mu      sync.Mutex
	latches map[string]*latch
}

func newBout(s *soak, number uint64) *bout {
	b := &bout{soak: s, number: number, rnd: rand.New(rand.NewPCG(s.seed, number)), latches: map[string]*latch{}}
	b.d.always = s.sabotage
	return b
}

// oneIn is true once in n times.
func oneIn(rnd *rand.Rand, n int) bool { return rnd.IntN(n) == 0 }

// pick is one of them.
func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

func (b *bout) run() (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the bout does not end"))
	defer cancel()
	if oneIn(b.rnd, 8) && wakes.TryLock() {
		defer wakes.Unlock()
		stop := inject.Late(b.rnd.Uint64(), time.Duration(1+b.rnd.IntN(200))*time.Microsecond)
		defer func() {
			stop()
			if err == nil {
				b.soak.tally.survive("wake-ups late, twice and out of order")
			}
		}()
	}
	b.node, err = rank.NewNode(rank.NodeConfig{
		RingBytes: int64(pick(b.rnd, 8<<10, 16<<10, 64<<10, 1<<20)),
		Inject:    b.d.inject, Intercept: b.d.intercept,
	})
	if err != nil {
		return err
	}
	if oneIn(b.rnd, 6) {
		if err := b.failOpen(ctx); err != nil {
			return err
		}
	}
	if oneIn(b.rnd, 5) {
		err = b.shared(ctx)
	} else {
		err = newVenue(b, "", alone).run(ctx)
	}
	if err != nil {
		return err
	}
	if qs := b.node.Queues(); len(qs) > 0 {
		return fmt.Errorf("%d queues are left", len(qs))
	}
	return nil
}

// failOpen opens worlds that cannot be opened: a queue cannot be made, or there
// is no such memory.
func (b *bout) failOpen(ctx context.Context) error {
	cfg := rank.Config{Ranks: 2 + b.rnd.IntN(3), HeapBytes: 1 << 16, Platform: b.soak.platform, Node: b.node}
	b.d.strike.Store(&strike{step: inject.Queue, rank: b.rnd.IntN(cfg.Ranks), way: "error"})
	_, err := rank.Open(ctx, cfg)
	b.d.strike.Store(nil)
	if !errors.Is(err, errInjected) {
		return fmt.Errorf("opening a world without one of its queues: %v", err)
	}
	b.soak.tally.survive("a queue that cannot be made")
	cfg.HeapBytes = 1 << 50
	_, err = rank.Open(ctx, cfg)
	if !isA[*hip.MemoryError](err) {
		return fmt.Errorf("opening a world with a heap of 1 PiB: %v", err)
	}
	b.soak.tally.survive("no memory for a heap")
	if qs := b.node.Queues(); len(qs) > 0 {
		return fmt.Errorf("%d queues are left of worlds that did not open", len(qs))
	}
	return nil
}

// shared runs two worlds over the same queues. If one of them loses a rank, the
// other must not notice.
func (b *bout) shared(ctx context.Context) error {
	second := steady
	if oneIn(b.rnd, 3) {
		second = mortal
	}
	venues := []*venue{newVenue(b, "first", steady), newVenue(b, "second", second)}
	errs := make([]error, len(venues))
	var group sync.WaitGroup
	for i, v := range venues {
		group.Go(func() { errs[i] = v.run(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// latch is where ranks of a bout wait for each other outside of collectives.
type latch struct {
	once sync.Once
	open chan struct{}
}

func (l *latch) release() { l.once.Do(func() { close(l.open) }) }

func (l *latch) wait(ctx context.Context) error {
	select {
	case <-l.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// latch is the one of that name, the same for every rank.
func (b *bout) latch(name string) *latch {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.latches[name]
	if l == nil {
		l = &latch{open: make(chan struct{})}
		b.latches[name] = l
	}
	return l
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
