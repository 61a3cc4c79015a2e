package hip

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

var badEnds = map[string]func(*Thread){
	"panic":          func(*Thread) { panic(errors.New("bad")) },
	"Goexit":         func(*Thread) { runtime.Goexit() },
	"Fail":           func(th *Thread) { th.Fail(errors.New("bad")) },
	"a wild address": func(th *Thread) { th.Bytes(8, 8) },
	"no argument":    func(th *Thread) { th.Arg(3) },
}

// TestAKernelThatDoesNotEndWellFailsItsStream has one thread of several end in
// every way but a return.
func TestAKernelThatDoesNotEndWellFailsItsStream(t *testing.T) {
	for name, end := range badEnds {
		t.Run(name, func(t *testing.T) {
			s := newHostStream("host:0")
			defer s.Close(context.Background())
			done := 0
			l := Launch{Grid: Grid{Blocks: 3, Threads: 2}, Done: func() { done++ }, Func: &Function{Name: "k", Go: func(th *Thread) {
				if th.Block == 1 && th.Index == 1 {
					end(th)
				}
				th.Barrier() // the other thread of the CTA waits here for one that never comes
			}}}
			if err := s.Launch(l); err != nil {
				t.Fatal(err)
			}
			var failed *KernelError
			if err := s.Sync(context.Background()); !errors.As(err, &failed) {
				t.Fatalf("got %v, want a *KernelError", err)
			}
			if failed.Kernel != "k" || failed.Block != 1 || failed.Thread != 1 || failed.Err == nil {
				t.Errorf("the error is wrong: %+v", failed)
			}
			if err := s.Launch(l); err != s.Err() {
				t.Errorf("the next launch returns %v, want the kernel's error", err)
			}
			if done != 1 {
				t.Errorf("the launch ended %d times", done)
			}
		})
	}
}

// The last thread of a kernel runs on the goroutine that drives the stream.
func TestWhatWaitsBehindAKernelThatDoesNotEndWellEndsWithoutRunning(t *testing.T) {
	for name, end := range badEnds {
		t.Run(name, func(t *testing.T) {
			s := newHostStream("host:0")
			const blocks = 3
			var ended, ran atomic.Int64 // threads
			begin, done := make(chan struct{}), 0
			first := &Function{Name: "first", Go: func(th *Thread) {
				defer ended.Add(1)
				if th.Block == blocks-1 {
					end(th)
				}
				<-begin
			}}
			second := &Function{Name: "second", Go: func(*Thread) { ran.Add(1) }}
			for _, f := range []*Function{first, second, second} {
				l := Launch{Grid: Grid{Blocks: blocks}, Func: f, Done: func() {
					if n := ended.Load(); n != blocks {
						t.Errorf("a launch ends when %d threads have, of %d", n, blocks)
					}
					done++
				}}
				if err := s.Launch(l); err != nil {
					t.Fatal(err)
				}
			}
			close(begin)
			var failed *KernelError
			if err := s.Sync(context.Background()); !errors.As(err, &failed) || failed.Kernel != "first" || failed.Block != blocks-1 {
				t.Errorf("got %v, want the first kernel's error", err)
			}
			if ran.Load() != 0 || done != 3 {
				t.Errorf("%d threads ran behind it and %d launches ended, want 0 and 3", ran.Load(), done)
			}
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAThreadsWaitEndsWithItsStream(t *testing.T) {
	for _, threads := range []int{1, 3} {
		s := newHostStream("host:0")
		var never Word
		begun, ended := make(chan struct{}, threads), make(chan error, threads)
		wait := &Function{Name: "wait", Go: func(th *Thread) {
			begun <- struct{}{}
			ended <- th.Await(&never, func(v uint64) bool { return v != 0 })
		}}
		if err := s.Launch(Launch{Grid: Grid{Blocks: threads}, Func: wait}); err != nil {
			t.Fatal(err)
		}
		for range threads {
			<-begun
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Close(gone); err != nil {
			t.Errorf("%d threads: %v", threads, err)
		}
		for range threads {
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("%d threads: a wait ends with %v, want ErrClosed", threads, err)
			}
		}
	}
}

func TestAThreadWaitsAgainAndAgain(t *testing.T) {
	s := newHostStream("host:0")
	defer s.Close(context.Background())
	var ping, pong Word
	const rounds = 1000
	f := &Function{Name: "pong", Go: func(th *Thread) {
		for i := range uint64(rounds) {
			if err := th.Await(&ping, func(v uint64) bool { return v > i }); err != nil {
				th.Fail(err)
			}
			pong.Add(1)
		}
	}}
	if err := s.Launch(Launch{Grid: Grid{Blocks: 1}, Func: f}); err != nil {
		t.Fatal(err)
	}
	w := NewWaiter()
	for i := range uint64(rounds) {
		ping.Add(1)
		if err := w.Await(t.Context(), &pong, func(v uint64) bool { return v > i }, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSignalSaysWhetherSomebodyWaits(t *testing.T) {
	var word, other Word
	if word.Signal(2) {
		t.Error("it has woken somebody where nobody waits")
	}
	w := NewWaiter()
	w.Watch(&word)
	if other.Signal(1) {
		t.Error("it has woken somebody who waits for another word")
	}
	if !word.Signal(3) || word.Load() != 5 {
		t.Errorf("it says that nobody waits, or the word is %d, not 5", word.Load())
	}
	if err := w.Park(t.Context()); err != nil {
		t.Error(err)
	}
	w.Unwatch()
	if word.Signal(1) {
		t.Error("it has woken who does not wait any more")
	}
}
