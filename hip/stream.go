package hip

import (
	"context"
	"fmt"
	"math"
)

// Stream runs launches one after the other, in the order they were made.
type Stream interface {
	// Launch queues l and returns. It fails with the stream's first error if a
	// kernel has failed, or with ErrClosed.
	Launch(l Launch) error
	// Idle reports whether everything launched so far has ended.
	Idle() bool
	// Watch has w woken when a launch ends.
	Watch(w *Waiter)
	// Sync waits until everything launched so far has ended and returns the
	// stream's first error, or ctx's cause.
	Sync(ctx context.Context) error
	// Err is the first error of a kernel, nil if there was none.
	Err() error
	// Running names the kernel that runs now, "" if none does.
	Running() string
	// Close waits under ctx for what was launched, then ends kernels that wait,
	// which fail with ErrClosed. A kernel that does not end even so is named in
	// the error. Closing twice has no effect.
	Close(ctx context.Context) error
}

// Function is a kernel that a device can run.
type Function struct {
	Name string
	// Go is what one thread does on the host platform.
	Go func(*Thread)

	code any // what a device has loaded; nil on the host platform
}

// sharer is a device's kernel that may have dynamic shared memory.
type sharer interface{ share(bytes int) error }

// Share gives each CTA of the kernel's launches so many bytes of dynamic shared
// memory (AMD's LDS), besides what its code declares. Call it before the first
// launch. The error is ErrNoModules for a Go function, a *BusyError while the
// device works, or what the driver says of a size that the device does not have.
func (f *Function) Share(bytes int) error {
	s, ok := f.code.(sharer)
	if !ok {
		return ErrNoModules
	}
	return s.share(bytes)
}

// Grid is the shape of a launch.
type Grid struct {
	Blocks  int // CTAs ("programs"), at least 1
	Threads int // threads of each CTA; 0 leaves it to the platform: 1 on the host, 256 on NVIDIA's GPUs
	// Waits says that the kernel waits for arrivals. Where ranks share a GPU,
	// such kernels must together leave room for every rank's producer.
	Waits bool
}

// Launch is one run of a kernel.
type Launch struct {
	Func *Function
	Grid Grid
	Args []Arg
	// Env is for the kernel's Go function; see Thread.Env.
	Env any
	// Done, if not nil, is called once when the launch has ended, however it
	// ended, before the next one starts.
	Done func()
}

// Arg is one scalar argument of a kernel: its bits, and how many bytes of them
// count (4 or 8).
type Arg struct {
	Bits uint64
	Size int
}

// U64 is a 64-bit argument: an integer or an address.
func U64(v uint64) Arg { return Arg{v, 8} }

// U32 is a 32-bit argument.
func U32(v uint32) Arg { return Arg{uint64(v), 4} }

// F32 is a 32-bit floating-point argument.
func F32(v float32) Arg { return U32(math.Float32bits(v)) }

// F64 is a 64-bit floating-point argument.
func F64(v float64) Arg { return U64(math.Float64bits(v)) }

// KernelError says that a kernel did not end well.
type KernelError struct {
	Device, Kernel string
	Block, Thread  int    // -1 where the device does not tell
	Err            error  // what it failed with
	Stack          string // of a panic
}

func (e *KernelError) Error() string {
	if e.Block < 0 {
		return fmt.Sprintf("hip: kernel %s failed on %s: %v", e.Kernel, e.Device, e.Err)
	}
	return fmt.Sprintf("hip: kernel %s failed on %s (block %d, thread %d): %v", e.Kernel, e.Device, e.Block, e.Thread, e.Err)
}

func (e *KernelError) Unwrap() error { return e.Err }
