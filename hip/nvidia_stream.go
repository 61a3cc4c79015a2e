//go:build cgo && linux

package hip

// #include "cuda_shim.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
)

// nvidiaStream runs launches. The device counts those that have ended in a word
// that the host reads, so nobody asks the driver unless something is wrong.
type nvidiaStream struct {
	device *nvidiaDevice
	ended  deviceWord
	life   context.Context // of the reaper
	end    context.CancelFunc

	mu       sync.Mutex
	reapers  sync.WaitGroup
	stream   C.cuda_handle // nil once it is given back
	launched uint64
	running  []nvidiaLaunch // that have not been reaped, in order
	reaping  bool
	closed   bool
	err      error
}

type nvidiaLaunch struct {
	name string
	done func()
}

// mostLaunches is how many launches may be under way on a stream. The driver
// takes about a thousand commands, two for each, and then blocks its caller.
const mostLaunches = 256

// mostThreads is what a CTA has where the launch does not say.
const mostThreads = 256

func (d *nvidiaDevice) NewStream() (Stream, error) {
	s := &nvidiaStream{device: d}
	var err error
	if s.stream, err = d.takeStream("launches"); err != nil {
		return nil, err
	}
	s.ended = d.words.take(0)
	s.life, s.end = context.WithCancel(context.Background())
	d.began(s)
	return s, nil
}

func (s *nvidiaStream) busy() string {
	if s.Idle() {
		return ""
	}
	if n := s.Running(); n != "" {
		return "kernel " + n
	}
	return "a launch"
}

// Launch implements Stream. It fails with a *LaunchError, a *RoomError, or what
// the driver says.
func (s *nvidiaStream) Launch(l Launch) error {
	f, args, err := s.checked(&l)
	if err != nil {
		return err
	}
	s.device.platform.calm.RLock()
	defer s.device.platform.calm.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launch(l, f, args)
}

// launchIfIdle is Launch for who holds the platform's calm. It returns how many
// launches the stream has had with this one, or 0 if it was left alone: it has
// something to do, is closed, or has failed.
func (s *nvidiaStream) launchIfIdle(l Launch) (n uint64, err error) {
	f, args, err := s.checked(&l)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil || s.ended.Load() < s.launched {
		return 0, nil
	}
	if err := s.launch(l, f, args); err != nil {
		return 0, err
	}
	return s.launched, nil
}

func (s *nvidiaStream) refused(l *Launch, format string, args ...any) error {
	return &LaunchError{Device: s.device.Name(), Kernel: l.Func.Name, Why: fmt.Sprintf(format, args...)}
}

// checked compares a launch with what its kernel takes, and fills in what it
// leaves open.
func (s *nvidiaStream) checked(l *Launch) (*nvidiaFunction, []C.uint64_t, error) {
	f, ok := l.Func.code.(*nvidiaFunction)
	switch {
	case !ok:
		return nil, nil, s.refused(l, "it is not loaded; take it from a module that the device has loaded")
	case f.device != s.device:
		return nil, nil, s.refused(l, "it was loaded on %s", f.device.Name())
	case l.Grid.Blocks < 1 || l.Grid.Threads < 0 || l.Grid.Threads > f.threads:
		return nil, nil, s.refused(l, "its grid has %d CTAs of %d threads; there is at least one CTA, and the kernel allows %d threads", l.Grid.Blocks, l.Grid.Threads, f.threads)
	}
	if why := f.checkArgs(l.Args); why != "" {
		return nil, nil, s.refused(l, "%s", why)
	}
	if l.Grid.Threads == 0 {
		l.Grid.Threads = min(mostThreads, f.threads)
	}
	args := make([]C.uint64_t, len(l.Args)+1)
	for i, a := range l.Args {
		args[i] = C.uint64_t(a.Bits)
	}
	return f, args, nil
}

// launch is called under the stream's lock.
func (s *nvidiaStream) launch(l Launch, f *nvidiaFunction, args []C.uint64_t) error {
	switch {
	case s.closed:
		return fmt.Errorf("launch of %s on %s: %w", l.Func.Name, s.device.Name(), ErrClosed)
	case s.err != nil:
		return s.err
	case len(s.running) == mostLaunches:
		return s.refused(&l, "%d launches are under way on the stream, the most that it takes; wait for some with Sync", mostLaunches)
	}
	if l.Grid.Waits {
		release, err := s.hold(f, l)
		if err != nil {
			return err
		}
		l.Done = both(release, l.Done)
	}
	r := C.cuda_launch(s.device.c, s.stream, f.c, C.uint(l.Grid.Blocks), C.uint(l.Grid.Threads),
		C.uint(f.dynamic()), &args[0], C.int(len(l.Args)), C.cuda_ptr(s.ended.addr), C.uint64_t(s.launched+1))
	if err := s.device.checkFor("kernel "+l.Func.Name, r); err != nil {
		if l.Grid.Waits {
			s.device.releaseHold(s)
		}
		return err
	}
	s.launched++
	s.running = append(s.running, nvidiaLaunch{l.Func.Name, l.Done})
	s.device.guard()
	if !s.reaping {
		s.reaping = true
		s.reapers.Go(s.reap)
	}
	return nil
}

func both(first, then func()) func() {
	return func() {
		first()
		if then != nil {
			then()
		}
	}
}

// reap ends launches as the device tells of them, and itself when there are
// none.
func (s *nvidiaStream) reap() {
	w := NewWaiter()
	w.Watch(s.ended.Word)
	defer w.Unwatch()
	for s.reapEnded(s.ended.Load()) {
		if w.Park(s.life) != nil {
			return
		}
	}
}

// reapEnded ends launches up to the count n, or all of them if one has failed.
// It reports false if none are left.
func (s *nvidiaStream) reapEnded(n uint64) bool {
	s.mu.Lock()
	if s.err != nil {
		n = s.launched
	}
	first := s.launched - uint64(len(s.running))
	ended := s.running[:n-first]
	s.running = s.running[len(ended):]
	if len(s.running) == 0 {
		s.running = nil
	}
	s.reaping = len(s.running) > 0
	left := s.reaping
	s.mu.Unlock()
	for _, l := range ended {
		if l.done != nil {
			l.done()
		}
	}
	return left
}

// examine implements worker. An error of the device becomes that of the kernel
// that runs.
func (s *nvidiaStream) examine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == nil {
		return
	}
	r := C.cuda_stream_query(s.device.c, s.stream, 1)
	if r.code == C.CUDA_NOT_READY {
		return
	}
	err := s.device.check(r)
	if err == nil || s.err != nil || len(s.running) == 0 {
		return
	}
	s.err = &KernelError{Device: s.device.Name(), Kernel: s.running[0].name, Block: -1, Thread: -1, Err: err}
	wake(s.ended.Word)
}

func (s *nvidiaStream) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.ended.Load() >= s.launched
}

func (s *nvidiaStream) Watch(w *Waiter) { w.Watch(s.ended.Word) }

func (s *nvidiaStream) Sync(ctx context.Context) error {
	s.mu.Lock()
	upTo := s.launched
	s.mu.Unlock()
	return s.await(ctx, upTo)
}

// await waits until so many launches have ended.
func (s *nvidiaStream) await(ctx context.Context, upTo uint64) error {
	if s.ended.Load() < upTo {
		w := NewWaiter()
		if err := w.Await(ctx, s.ended.Word, func(v uint64) bool { return v >= upTo }, s.Err); err != nil {
			return err
		}
	}
	return s.Err()
}

func (s *nvidiaStream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Running is the first kernel that has not ended.
func (s *nvidiaStream) Running() string {
	n := s.ended.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.launched - uint64(len(s.running))
	if at := int(n - first); s.err == nil && n >= first && at < len(s.running) {
		return s.running[at].name
	}
	return ""
}

// Close implements Stream. A device cannot end a kernel: one that goes on is a
// *StuckError, and what it uses is never used again.
func (s *nvidiaStream) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	given := s.stream == nil
	upTo := s.launched
	s.mu.Unlock()
	if given {
		return nil
	}
	err := s.await(ctx, upTo)
	if err != nil && s.Err() == nil {
		s.end()
		return &StuckError{Device: s.device.Name(), What: "kernel " + s.Running(), Err: err}
	}
	s.device.proving.RLock()
	defer s.device.proving.RUnlock()
	s.reapers.Wait() // it looks at the word
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream == nil {
		return nil
	}
	if s.err == nil {
		s.device.putStream(s, s.stream)
		s.device.words.put(s.ended)
	}
	s.stream = nil
	return nil
}
