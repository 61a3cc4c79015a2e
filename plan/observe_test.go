package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
	"github.com/triggeredplans/sluice/timeline"
)

// picture draws each chunk's way: a letter per rank, a line per chunk.
func picture(s Snapshot) string {
	var b strings.Builder
	for i, c := range s.Chunks {
		fmt.Fprintf(&b, "%d:%d/%d ", i, c.Marks, c.Writers)
		for _, at := range c.At {
			b.WriteByte(" .msa"[at+1])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestAStuckRoundIsSeenChunkByChunkWithTheSentencesOfATimeout(t *testing.T) {
	world{ranks: 3}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 3, rows: 2, cols: 32, writers: 2, silent: r.ID() == 1}, 0x0b5)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := g.rounds(ctx, p, 2, 1); err != nil {
			return err
		}
		if err := p.NextRound(ctx); err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		if !g.silent {
			err = g.script(h, 1, func(prog *kernels.Program) {
				l := prog.On(0).Mark(p.first).Mark(p.first)
				if r.ID() == 0 {
					l.Mark(p.first + 1) // once of twice
				} else {
					l.Mark(p.first + 1).Mark(p.first + 1)
				}
				l.Mark(p.first + 2).Mark(p.first + 2)
			})
			if err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		timeout, err := expect[*TimeoutError](p.Wait(short))
		if err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if r.ID() == 0 {
			if err := seeStuck(r.World(), timeout); err != nil {
				return err
			}
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		return p.Close(ctx)
	})
}

func seeStuck(w *rank.World, timeout *TimeoutError) error {
	o := Observe(w)
	if len(o.Plans) != 1 {
		return fmt.Errorf("%d plans are seen", len(o.Plans))
	}
	s := o.Plans[0]
	want := "0:2/2 maa\n1:1/2 ...\n2:2/2 mmm\n3:2/2 aam\n4:2/2 aam\n5:2/2 aam\n"
	if got := picture(s); got != want || s.Round != 3 {
		return fmt.Errorf("round %d is\n%swant round 3 and\n%s", s.Round, got, want)
	}
	for r, p := range s.Ranks {
		marked, delivered := []int{2, 0, 3}[r], []int{1, 0, 3}[r]
		if p.State != Failed || p.Err == nil || p.Since < 50*time.Millisecond || p.Marked != marked || p.Delivered != delivered {
			return fmt.Errorf("rank %d is seen as %+v, want FAILED with %d marked and %d delivered", r, p, marked, delivered)
		}
		marks, timeouts := []uint64{2*6 + 5, 0, 3 * 6}[r], uint64(1)
		if got := o.Ranks[r]; got != (Totals{Rounds: 2, Marks: marks, Timeouts: timeouts}) {
			return fmt.Errorf("rank %d has done %+v, want 2 rounds, %d marks and a timeout", r, got, marks)
		}
	}
	if n := o.Wait.Count(); n != 9 {
		return fmt.Errorf("%d Waits were timed, there were 9", n)
	}
	// Rank 0 waits for all that is short here: its own chunks.
	for _, short := range s.Short {
		if !strings.Contains(timeout.Error(), short.String()) {
			return fmt.Errorf("%q is not in %q", short, timeout)
		}
	}
	if len(s.Short) != 3 || len(timeout.Short) != 3 || s.More != 0 {
		return fmt.Errorf("%v and %d more are short, the timeout has %v", s.Short, s.More, timeout.Short)
	}
	return nil
}

func TestWhatAPlanDidIsKeptWhenItIsClosed(t *testing.T) {
	cfg := world{ranks: 2}.config(t)
	ctx := t.Context()
	w, err := rank.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		err = w.Run(ctx, func(ctx context.Context, r *rank.Rank) error {
			g, err := newRig(ctx, r, shape{chunks: 4, rows: 1, cols: 64}, uint64(0xc105+n))
			if err != nil {
				return err
			}
			p, err := newAt(ctx, r, g.out, g.mine, uint64(10*n+1))
			if err != nil {
				return err
			}
			if err := g.rounds(ctx, p, 5); err != nil {
				return err
			}
			return p.Close(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		o := Observe(w)
		want := Totals{Rounds: uint64(5 * (n + 1)), Marks: uint64(20 * (n + 1))}
		if len(o.Plans) != 0 || o.Ranks[0] != want || o.Ranks[1] != want {
			t.Errorf("after %d plans: %d are seen, totals %+v; want none and %+v on both ranks", n+1, len(o.Plans), o.Ranks, want)
		}
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if o := Observe(w); len(o.Plans) != 0 || o.Ranks[0].Rounds != 15 || o.Preparation.Count() != 15 {
		t.Errorf("of a closed world %+v is seen", o)
	}
	if qs := w.Queues(); len(qs) != 0 {
		t.Errorf("a closed world has %d queues", len(qs))
	}
}

func TestMarksThatShouldNotBeAreCounted(t *testing.T) {
	world{ranks: 2}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 2, rows: 1, cols: 64}, 0xe47a)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		h, err := p.Start(ctx)
		if err != nil {
			return err
		}
		err = g.script(h, 1, func(prog *kernels.Program) {
			l := prog.On(0).Mark(p.first).Mark(p.first + 1)
			if r.ID() == 1 {
				l.Mark(p.first + 1).Mark(0).Mark(1) // one too many, two that are rank 0's
			}
		})
		if err != nil {
			return err
		}
		err = p.Wait(ctx)
		if r.ID() == 1 {
			if _, err := expect[*MarksError](err); err != nil {
				return err
			}
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		want := []Totals{{Rounds: 1, Marks: 2}, {Marks: 3, ExtraMarks: 3}}[r.ID()]
		if got := Observe(r.World()).Ranks[r.ID()]; got != want {
			return fmt.Errorf("rank %d has done %+v, want %+v", r.ID(), got, want)
		}
		return nil
	})
}

func TestPreparationsThatFailAreCountedByKind(t *testing.T) {
	for _, c := range []struct {
		kind string
		err  error
	}{
		{"capacity", &copyengine.CapacityError{}},
		{"put", fmt.Errorf("queue: %w", copyengine.ErrPutWaits)},
		{"fault", &copyengine.FaultError{Err: errors.New("stopped")}},
		{"ring", &copyengine.RingError{Err: &copyengine.FaultError{}}},
		{"schedule", &schedule.Error{Kind: schedule.ErrSize}},
		{"schedule", ErrEmpty},
		{"state", &StateError{}},
		{"rank", &rank.GoneError{}},
		{"other", errors.New("something")},
	} {
		err := fmt.Errorf("plan: New on rank 1: %w", &rank.VoteError{Err: c.err})
		if got := kindOf(err); got != c.kind {
			t.Errorf("%v is of kind %q, want %q", err, got, c.kind)
		}
	}
	refuse := func(s inject.Step, r int) error {
		if s == inject.Encode && r == 1 {
			return &copyengine.CapacityError{}
		}
		return nil
	}
	world{ranks: 3, cfg: rank.NodeConfig{Inject: refuse}}.run(t, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: 1, rows: 1, cols: 64}, 1)
		if err != nil {
			return err
		}
		if _, err := New(ctx, r, g.out, g.mine); err == nil {
			return errors.New("New succeeded")
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
		if o := Observe(r.World()); len(o.Refused) != 1 || o.Refused["capacity"] != 3 {
			return fmt.Errorf("refused: %v, want capacity on 3 ranks", o.Refused)
		}
		return nil
	})
}

func TestATimelineHasEveryChunksWayInItsOrder(t *testing.T) {
	hostOnly(t, "copy engines with a clock")
	var rec timeline.Recorder
	cfg := world{ranks: 3}.config(t)
	cfg.Timeline = &rec
	const rounds, chunks = 3, 4
	err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
		g, err := newRig(ctx, r, shape{chunks: chunks, rows: 2, cols: 48, gap: 16, silent: r.ID() == 2}, 0x71e)
		if err != nil {
			return err
		}
		p, err := New(ctx, r, g.out, g.mine)
		if err != nil {
			return err
		}
		if err := g.rounds(ctx, p, rounds, 2); err != nil {
			return err
		}
		return p.Close(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	got := rec.Rounds()
	if len(got) != 3*rounds {
		t.Fatalf("%d rounds are recorded, there were %d on each of 3 ranks", len(got), rounds)
	}
	for _, r := range got {
		want := []int{chunks, chunks, 0}[r.Rank]
		if len(r.Chunks) != want || r.Started <= 0 || r.Started > r.Ended {
			t.Fatalf("rank %d, round %d: %d chunks from %v to %v, want %d", r.Rank, r.Round, len(r.Chunks), r.Started, r.Ended, want)
		}
		free := map[int]time.Duration{}
		for i, c := range r.Chunks {
			if c.ID != r.Rank*chunks+i || c.Bytes != 96 || len(c.Copies) != 2 || c.Marked < r.Started {
				t.Errorf("rank %d, round %d: chunk %+v", r.Rank, r.Round, c)
			}
			for _, k := range c.Copies {
				if k.Peer == r.Rank || !(c.Marked <= k.Began && k.Began <= k.Ended && k.Ended <= k.Arrived && k.Arrived <= r.Ended) || k.Began < free[k.Peer] {
					t.Errorf("rank %d, round %d, chunk %d, marked at %v: %+v, the queue being free at %v", r.Rank, r.Round, c.ID, c.Marked, k, free[k.Peer])
				}
				free[k.Peer] = k.Arrived
			}
		}
	}
}

func TestWhatATimelineAddsCountsAgainstTheCapacity(t *testing.T) {
	hostOnly(t, "copy engines with a clock")
	held := func(rec *timeline.Recorder) (bytes int64) {
		cfg := world{ranks: 2}.config(t)
		cfg.Timeline = rec
		err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
			g, err := newRig(ctx, r, shape{chunks: 5, rows: 1, cols: 64}, 2)
			if err != nil {
				return err
			}
			p, err := New(ctx, r, g.out, g.mine)
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				bytes = r.Queue(1).Snapshot().Held
			}
			return p.Close(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if off, on := held(nil), held(new(timeline.Recorder)); off != 5*(24+28+32) || on != off+5*3*12 {
		t.Errorf("five chunks hold %d bytes, and %d with a timeline; want 84 each, and 3 timestamps of 12 more", off, on)
	}
}
