package rank

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// TestAWorldRunsAgainHoweverItsRanksEnded has a rank end in every way, in its
// body and while it decides for all, and then all of them meet again.
func TestAWorldRunsAgainHoweverItsRanksEnded(t *testing.T) {
	bad := errors.New("bad")
	ways := map[string]func() error{
		"an error": func() error { return bad },
		"a panic":  func() error { panic(bad) },
		"Goexit":   func() error { runtime.Goexit(); return nil },
	}
	for name, end := range ways {
		for _, deciding := range []bool{false, true} {
			where := "in its body"
			if deciding {
				where = "while it decides"
			}
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				w := open(t, config(t, 3, NodeConfig{}))
				for range 3 {
					err := w.Run(ctx, func(ctx context.Context, r *Rank) error {
						if err := r.Barrier(ctx); err != nil {
							return err
						}
						if !deciding && r.ID() == 1 {
							return end()
						}
						return r.Meet(ctx, &Call{Op: "Meet", Decide: func([]*Call) error { return end() }})
					})
					if want := map[string]error{"an error": bad, "a panic": bad, "Goexit": ErrGoexit}[name]; !errors.Is(err, want) {
						t.Fatalf("got %v, want %v", err, want)
					}
					met := make([]int, 3)
					err = w.Run(ctx, func(ctx context.Context, r *Rank) error {
						for range 5 {
							err := r.Meet(ctx, &Call{Op: "Meet", Decide: func([]*Call) error {
								for i := range met {
									met[i]++
								}
								return nil
							}})
							if err != nil {
								return err
							}
							if met[r.ID()] == 0 {
								return errors.New("a verdict of the run before")
							}
							met[r.ID()]--
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
