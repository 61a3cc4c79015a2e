package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// Stream runs launches of one rank in order.
type Stream struct {
	rank *Rank
	hip  hip.Stream
}

// Argument is a kernel argument that must be kept while the kernel runs, such
// as a plan's handle.
type Argument interface {
	// Use gives the argument's bits for a launch by r, and a function that ends
	// the use.
	Use(r *Rank) (arg hip.Arg, done func(), err error)
}

// NewStream makes one more stream of the rank, until its world is closed.
func (r *Rank) NewStream() (*Stream, error) {
	if err := r.world.alive(); err != nil {
		return nil, err
	}
	s, err := r.device.NewStream()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &Stream{rank: r, hip: s}
	r.streams = append(r.streams, st)
	return st, nil
}

// Launch runs a kernel on the rank's default stream. See Stream.Launch.
func (r *Rank) Launch(k *kernels.Kernel, grid hip.Grid, args ...any) error {
	return r.stream.Launch(k, grid, args...)
}

// Launch queues a kernel and returns; the kernel runs behind everything that
// was launched on the stream before. Arguments are tensors (their address),
// plans' handles, and integers and floats of Go's types, which keep their size
// (int and bool are 64 bits). Tensors and handles are kept until the kernel
// has ended. The error is an *ArgumentError if an argument is none; a kernel
// that failed earlier makes Launch fail with its *hip.KernelError.
func (s *Stream) Launch(k *kernels.Kernel, grid hip.Grid, args ...any) error {
	f, err := s.rank.function(k)
	if err != nil {
		return err
	}
	l := hip.Launch{Func: f, Grid: grid, Env: &s.rank.copier}
	var uses []func()
	end := func() {
		for _, done := range uses {
			done()
		}
	}
	for i, a := range args {
		arg, done, err := s.rank.argument(a)
		if err != nil {
			end()
			return &ArgumentError{Kernel: k.Name, Rank: s.rank.id, Index: i, Err: err}
		}
		l.Args = append(l.Args, arg)
		if done != nil {
			uses = append(uses, done)
		}
	}
	l.Done = end
	if err := s.hip.Launch(l); err != nil {
		end()
		return fmt.Errorf("rank: launch on rank %d: %w", s.rank.id, err)
	}
	return nil
}

// function is what the rank's device runs for a kernel.
func (r *Rank) function(k *kernels.Kernel) (*hip.Function, error) {
	switch {
	case k.Loaded != nil:
		return k.Loaded, nil
	case r.builtin == nil:
		return &hip.Function{Name: k.Name, Go: k.Go}, nil
	case r.builtin[k.Name] == nil:
		return nil, &KernelError{Kernel: k.Name, Rank: r.id, Device: r.device.Name()}
	}
	return r.builtin[k.Name], nil
}

// argument turns a Go value into a kernel's.
func (r *Rank) argument(a any) (hip.Arg, func(), error) {
	switch a := a.(type) {
	case Argument:
		return a.Use(r)
	case *heap.Tensor:
		if err := r.Check(a); err != nil {
			return hip.Arg{}, nil, err
		}
		if err := a.Block().Hold(); err != nil {
			return hip.Arg{}, nil, err
		}
		return hip.U64(a.At(r.id).Addr()), a.Block().Release, nil
	case int:
		return hip.U64(uint64(a)), nil, nil
	case int64:
		return hip.U64(uint64(a)), nil, nil
	case uint64:
		return hip.U64(a), nil, nil
	case int32:
		return hip.U32(uint32(a)), nil, nil
	case uint32:
		return hip.U32(a), nil, nil
	case float32:
		return hip.F32(a), nil, nil
	case float64:
		return hip.F64(a), nil, nil
	}
	return hip.Arg{}, nil, fmt.Errorf("a %T is no kernel argument; pass a tensor, a handle, an integer or a float", a)
}

// Sync waits until everything launched on the stream so far has ended, and
// returns the first kernel's failure.
func (s *Stream) Sync(ctx context.Context) error { return s.hip.Sync(ctx) }

// Sync waits until everything launched on the rank so far has ended, and
// returns the first kernel's failure.
func (r *Rank) Sync(ctx context.Context) error {
	for _, s := range r.allStreams() {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Idle reports whether everything launched on the rank has ended.
func (r *Rank) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.streams {
		if !s.hip.Idle() {
			return false
		}
	}
	return true
}

// WatchLaunches has w woken when a launch on a stream that is not idle ends,
// and reports whether there is one.
func (r *Rank) WatchLaunches(w *hip.Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.streams {
		if !s.hip.Idle() {
			s.hip.Watch(w)
			if s.hip.Idle() {
				w.Wake() // the last launch ended before it was watched
			}
			return true
		}
	}
	return false
}

// Running names the kernels that run on the rank now.
func (r *Rank) Running() (names []string) {
	for _, s := range r.allStreams() {
		if n := s.hip.Running(); n != "" {
			names = append(names, n)
		}
	}
	return names
}

// KernelErr is the first failure of each stream's kernels, nil if there was
// none.
func (r *Rank) KernelErr() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.streams {
		if err := s.hip.Err(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Rank) allStreams() []*Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.streams)
}
