package hip

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// TestAKernelThatDoesNotEndWellFailsItsStream has one thread of several end in
// every way but a return.
func TestAKernelThatDoesNotEndWellFailsItsStream(t *testing.T) {
	bad := errors.New("bad")
	for name, end := range map[string]func(*Thread){
		"panic":          func(*Thread) { panic(bad) },
		"Goexit":         func(*Thread) { runtime.Goexit() },
		"Fail":           func(th *Thread) { th.Fail(bad) },
		"a wild address": func(th *Thread) { th.Bytes(8, 8) },
		"no argument":    func(th *Thread) { th.Arg(3) },
	} {
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
