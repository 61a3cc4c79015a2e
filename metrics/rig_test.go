package metrics

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// show is a world whose ranks wait between the acts of a play, so that a test
// can look at it: each rank has a plan with a few chunks of one row.
type show struct {
	*rank.World
	acts chan struct{} // one token lets all ranks play one act
	seen chan struct{} // one token says that all have
	done chan error
}

// act is what a rank does in one act of the play; chunk 2 of rank 1 is the one
// that marks can be held back of.
type act func(ctx context.Context, a *actor) error

type actor struct {
	*rank.Rank
	out     *heap.Tensor
	program *heap.Tensor
	plan    *plan.Plan
	handle  plan.Handle
}

const (
	chunksPerRank = 4
	rowBytes      = 512
	heldBack      = chunksPerRank + 2
)

// newShow opens a world and starts the play, of which no act is played yet.
func newShow(t testing.TB, ranks int, acts ...act) *show {
	t.Helper()
	node, err := rank.NewNode(rank.NodeConfig{RingBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	w, err := rank.Open(t.Context(), rank.Config{Ranks: ranks, HeapBytes: 1 << 20, Platform: "host", Node: node})
	if err != nil {
		t.Fatal(err)
	}
	s := &show{World: w, acts: make(chan struct{}), seen: make(chan struct{}), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		s.done <- w.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			a := &actor{Rank: r}
			for _, play := range acts {
				if err := s.cue(ctx, r, s.acts); err != nil {
					return err
				}
				if err := play(ctx, a); err != nil {
					return err
				}
				if err := s.cue(ctx, r, s.seen); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-s.done
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// cue has rank 0 meet the test, between two barriers.
func (s *show) cue(ctx context.Context, r *rank.Rank, with chan struct{}) error {
	if err := r.Barrier(ctx); err != nil {
		return err
	}
	if r.ID() == 0 {
		var to, from chan struct{}
		if with == s.seen {
			to = s.seen
		} else {
			from = s.acts
		}
		select {
		case to <- struct{}{}:
		case <-from:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.Barrier(ctx)
}

// next plays the next act on every rank.
func (s *show) next(t testing.TB) {
	t.Helper()
	select {
	case s.acts <- struct{}{}:
	case err := <-s.done:
		s.done <- err
		t.Fatalf("the play has ended: %v", err)
	}
	select {
	case <-s.seen:
	case err := <-s.done:
		s.done <- err
		t.Fatalf("the play has ended: %v", err)
	}
}

// prepare makes a plan.
func prepare(ctx context.Context, a *actor) (err error) {
	if a.out, err = a.Zeros(ctx, heap.Uint8, a.Size()*chunksPerRank, rowBytes); err != nil {
		return err
	}
	if a.program, err = a.Zeros(ctx, heap.Uint64, 512); err != nil {
		return err
	}
	mine := a.out.Rows(a.ID()*chunksPerRank, (a.ID()+1)*chunksPerRank)
	chunks, err := schedule.Chunks(mine.Window(), 1, schedule.Options{Writers: 2})
	if err != nil {
		return err
	}
	a.plan, err = plan.New(ctx, a.Rank, a.out, chunks)
	return err
}

// mark launches a kernel that marks chunks of the rank, each so often.
func (a *actor) mark(marks map[int]int) error {
	p := kernels.NewProgram(1)
	for c := range chunksPerRank {
		id := a.plan.FirstChunk() + c
		for range marks[id] {
			p.On(0).Mark(id)
		}
	}
	words := p.Words()
	if err := heap.Write(a.program.Rows(0, len(words)), words); err != nil {
		return err
	}
	if err := a.Launch(kernels.Script, kernels.Grid(1), a.handle, a.program); err != nil {
		return err
	}
	return a.Sync(context.Background())
}

// stick starts a round in which one chunk lacks a mark. What can arrive has
// arrived when it returns.
func stick(ctx context.Context, a *actor) (err error) {
	if a.handle, err = a.plan.Start(ctx); err != nil {
		return err
	}
	marks := map[int]int{}
	for c := range a.Size() * chunksPerRank {
		marks[c] = 2
	}
	marks[heldBack] = 1
	if err := a.mark(marks); err != nil {
		return err
	}
	want := (a.Size()-1)*chunksPerRank + 2
	for a.ID() == 0 && a.delivered() < want {
		if err := ctx.Err(); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return a.Barrier(ctx)
}

// delivered is how many chunks of all ranks have arrived everywhere.
func (a *actor) delivered() (n int) {
	for _, p := range plan.Observe(a.World()).Plans {
		for r := range p.Ranks {
			if p.Plan == a.plan.String() {
				n += p.Ranks[r].Delivered
			}
		}
	}
	return n
}

// unstick makes the mark that was held back, and ends the round.
func unstick(ctx context.Context, a *actor) error {
	if a.ID() == 1 {
		if err := a.mark(map[int]int{heldBack: 1}); err != nil {
			return err
		}
	}
	return a.plan.Wait(ctx)
}

// giveUp waits in vain: the round fails.
func giveUp(ctx context.Context, a *actor) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 1, fmt.Errorf("no patience"))
	defer cancel()
	if a.plan.Wait(ctx) == nil {
		return fmt.Errorf("the round is done on rank %d", a.ID())
	}
	return nil
}

// again prepares another round and runs it.
func again(ctx context.Context, a *actor) (err error) {
	if err := a.plan.NextRound(ctx); err != nil {
		return err
	}
	if a.handle, err = a.plan.Start(ctx); err != nil {
		return err
	}
	marks := map[int]int{}
	for c := range a.Size() * chunksPerRank {
		marks[c] = 2
	}
	if err := a.mark(marks); err != nil {
		return err
	}
	return a.plan.Wait(ctx)
}

func closePlan(ctx context.Context, a *actor) error { return a.plan.Close(ctx) }
