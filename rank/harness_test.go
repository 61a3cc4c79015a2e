package rank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
)

// platform is where the tests run; SLUICE_PLATFORM chooses.
var platform = cmp.Or(os.Getenv("SLUICE_PLATFORM"), "host")

// hostOnly skips a test of what only the host platform has.
func hostOnly(t *testing.T, what string) {
	t.Helper()
	only(t, what, "host")
}

// only skips a test of what only some platforms have.
func only(t *testing.T, what string, platforms ...string) {
	t.Helper()
	if !slices.Contains(platforms, platform) {
		t.Skipf("only %v has %s", platforms, what)
	}
}

// patience bounds what should take no time at all.
const patience = 60 * time.Second

// ringBytes is small, so that tests meet its limits.
const ringBytes = 4096

// config is a world on a node of its own, so that tests run side by side.
func config(t testing.TB, ranks int, node NodeConfig) Config {
	t.Helper()
	if node.RingBytes == 0 {
		node.RingBytes = ringBytes
	}
	n, err := NewNode(node)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Ranks: ranks, HeapBytes: 1 << 20, Platform: platform, Node: n}
}

// run runs body on every rank of a world, and fails the test if a rank fails or
// queues are left.
func run(t testing.TB, cfg Config, body func(ctx context.Context, r *Rank) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := Run(ctx, cfg, body); err != nil {
		t.Fatal(err)
	}
	if qs := cfg.Node.Queues(); len(qs) > 0 {
		t.Fatalf("%d queues are left", len(qs))
	}
}

// open opens a world that is closed with the test.
func open(t testing.TB, cfg Config) *World {
	t.Helper()
	w, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// tensors is collective: it makes a tensor of each shape.
func tensors(ctx context.Context, r *Rank, dt heap.DType, shapes ...[]int) ([]*heap.Tensor, error) {
	var ts []*heap.Tensor
	for _, s := range shapes {
		t, err := r.Zeros(ctx, dt, s...)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// fill writes the data of a rank and a round into a tensor, row after row.
func fill(t *heap.Tensor, rank int, round uint64) error {
	b := make([]byte, t.Size())
	kernels.FillPattern(b, kernels.SeedOf(0x9a7, rank, round), 0)
	return t.Write(b)
}

// check compares a tensor with the data of a rank and a round.
func check(t *heap.Tensor, rank int, round uint64) error {
	b := make([]byte, t.Size())
	if err := t.Read(b); err != nil {
		return err
	}
	if wrong := kernels.CheckPattern(b, kernels.SeedOf(0x9a7, rank, round), 0); wrong > 0 {
		return fmt.Errorf("round %d: %d of %d bytes of rank %d are wrong", round, wrong, len(b), rank)
	}
	return nil
}

// blank says that a tensor has no byte but zero.
func blank(t *heap.Tensor) error {
	b := make([]byte, t.Size())
	if err := t.Read(b); err != nil {
		return err
	}
	for i, v := range b {
		if v != 0 {
			return fmt.Errorf("byte %d is %d, and nothing was put there", i, v)
		}
	}
	return nil
}

// expect says that an error is of type E.
func expect[E error](err error) (E, error) {
	var e E
	if !errors.As(err, &e) {
		return e, fmt.Errorf("got %v, want a %T", err, e)
	}
	return e, nil
}

// wantIs says that an error is another.
func wantIs(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, want %v", err, want)
	}
	return nil
}

// right is the next rank, left the one before.
func right(r *Rank) int { return (r.ID() + 1) % r.Size() }
func left(r *Rank) int  { return (r.ID() + r.Size() - 1) % r.Size() }

// ended is a context that has ended, for calls that must not wait.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
