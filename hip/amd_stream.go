//go:build cgo && linux

package hip

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdStream runs launches. An event behind each tells when it has ended; a
// goroutine asks for them while there are any.
type amdStream struct {
	device *amdDevice
	ended  Word // launches that have ended
	life   context.Context
	end    context.CancelFunc

	mu       sync.Mutex
	stream   rocm.Stream
	given    bool // back to HIP
	launched uint64
	running  []amdLaunch // that have not ended, in order
	reaping  bool
	closed   bool
	err      error
}

type amdLaunch struct {
	name  string
	done  func()
	event rocm.Event
}

// amdThreads is what a CTA has where the launch does not say.
const amdThreads = 256

func (d *amdDevice) NewStream() (Stream, error) {
	s := &amdStream{device: d}
	var err error
	if s.stream, err = d.rocm.NewStream(d.index); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Launch implements Stream. It fails with a *LaunchError or what HIP says.
func (s *amdStream) Launch(l Launch) error {
	refuse := func(format string, args ...any) error {
		return &LaunchError{Device: s.device.Name(), Kernel: l.Func.Name, Why: fmt.Sprintf(format, args...)}
	}
	f, ok := l.Func.code.(*amdFunction)
	switch {
	case !ok:
		return refuse("it is not loaded; take it from a module that the device has loaded")
	case f.device != s.device:
		return refuse("it was loaded on %s", f.device.Name())
	case l.Grid.Blocks < 1 || l.Grid.Threads < 0 || l.Grid.Threads > f.threads:
		return refuse("its grid has %d CTAs of %d threads; there is at least one CTA, and the kernel allows %d threads", l.Grid.Blocks, l.Grid.Threads, f.threads)
	}
	if l.Grid.Threads == 0 {
		l.Grid.Threads = min(amdThreads, f.threads)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("launch of %s on %s: %w", l.Func.Name, s.device.Name(), ErrClosed)
	case s.err != nil:
		return s.err
	}
	if err := s.launch(f, l); err != nil {
		return err
	}
	if !s.reaping {
		s.reaping = true
		go s.reap()
	}
	return nil
}

// launch puts a kernel on the stream, and an event behind it.
func (s *amdStream) launch(f *amdFunction, l Launch) error {
	d := s.device
	event, err := d.rocm.NewEvent(d.index)
	if err != nil {
		return err
	}
	if err = d.rocm.Launch(d.index, f.rocm, l.Grid.Blocks, l.Grid.Threads, int(f.shared.Load()), s.stream, packArgs(l.Args)); err == nil {
		err = d.rocm.Record(d.index, event, s.stream)
	}
	if err != nil {
		_ = d.rocm.DestroyEvent(d.index, event)
		return fmt.Errorf("hip: launch of %s on %s: %w", l.Func.Name, d.Name(), err)
	}
	s.launched++
	s.running = append(s.running, amdLaunch{l.Func.Name, l.Done, event})
	return nil
}

// packArgs is arguments as a kernel has them in memory: each at a multiple of
// its size.
func packArgs(args []Arg) []byte {
	var b []byte
	for _, a := range args {
		for len(b)%a.Size != 0 {
			b = append(b, 0)
		}
		if a.Size == 4 {
			b = binary.LittleEndian.AppendUint32(b, uint32(a.Bits))
		} else {
			b = binary.LittleEndian.AppendUint64(b, a.Bits)
		}
	}
	return b
}

// reap ends launches as their events happen, and itself when there are none.
func (s *amdStream) reap() {
	var between pause
	for s.life.Err() == nil {
		s.mu.Lock()
		if len(s.running) == 0 {
			s.running, s.reaping = nil, false
			s.mu.Unlock()
			return
		}
		l := s.running[0]
		s.mu.Unlock()
		done, err := s.look(l)
		if !done {
			between.wait()
			continue
		}
		between = pause{}
		s.mu.Lock()
		if err != nil && s.err == nil {
			s.err = &KernelError{Device: s.device.Name(), Kernel: l.name, Block: -1, Thread: -1, Err: err}
		}
		s.running = s.running[1:]
		s.mu.Unlock()
		if l.done != nil {
			l.done()
		}
		s.ended.Add(1)
	}
}

// look says whether a launch has ended, and what its stream ended with.
func (s *amdStream) look(l amdLaunch) (done bool, err error) {
	d := s.device
	if done, err = d.rocm.EventDone(d.index, l.event); !done {
		return false, nil
	}
	if err == nil {
		if ended, failed := d.rocm.StreamDone(d.index, s.stream); ended {
			err = failed
		}
	}
	_ = d.rocm.DestroyEvent(d.index, l.event)
	return true, err
}

func (s *amdStream) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended.Load() == s.launched
}

func (s *amdStream) Watch(w *Waiter) { w.Watch(&s.ended) }

func (s *amdStream) Sync(ctx context.Context) error {
	s.mu.Lock()
	upTo := s.launched
	s.mu.Unlock()
	if s.ended.Load() < upTo {
		if err := NewWaiter().Await(ctx, &s.ended, func(v uint64) bool { return v >= upTo }, nil); err != nil {
			return err
		}
	}
	return s.Err()
}

func (s *amdStream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *amdStream) Running() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) == 0 {
		return ""
	}
	return s.running[0].name
}

// Close implements Stream. A device cannot end a kernel: one that goes on is a
// *StuckError, and what it uses is never used again.
func (s *amdStream) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	upTo := s.launched
	s.mu.Unlock()
	err := NewWaiter().Await(ctx, &s.ended, func(v uint64) bool { return v == upTo }, nil)
	s.end()
	if err != nil {
		return &StuckError{Device: s.device.Name(), What: "kernel " + s.Running(), Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		return nil
	}
	s.given = true
	return s.device.rocm.DestroyStream(s.device.index, s.stream)
}
