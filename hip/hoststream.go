package hip

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// ErrClosed is returned for work given to a stream that is closed.
var ErrClosed = errors.New("hip: the stream is closed")

// hostStream runs host kernels. A goroutine drives it from the first launch until
// it is closed.
type hostStream struct {
	device string
	ctx    context.Context // ends when the stream's kernels must
	kill   context.CancelCauseFunc

	launched atomic.Uint64
	ended    Word // launches that have ended

	driver *Waiter // woken when something waits, or the stream is closed

	mu      sync.Mutex
	waiting []Launch
	driven  bool
	running string
	closed  bool
	err     error
}

func newHostStream(device string) *hostStream {
	s := &hostStream{device: device, driver: NewWaiter()}
	s.ctx, s.kill = context.WithCancelCause(context.Background())
	return s
}

func (s *hostStream) Launch(l Launch) error {
	if l.Func == nil || l.Func.Go == nil {
		return fmt.Errorf("hip: launch on %s: the kernel has no Go function, which is what the host platform runs", s.device)
	}
	if l.Grid.Threads == 0 {
		l.Grid.Threads = 1
	}
	if l.Grid.Blocks < 1 || l.Grid.Threads < 1 {
		return fmt.Errorf("hip: launch of %s on %s: a grid of %d blocks of %d threads is empty; both are at least 1", l.Func.Name, s.device, l.Grid.Blocks, l.Grid.Threads)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("launch of %s on %s: %w", l.Func.Name, s.device, ErrClosed)
	case s.err != nil:
		return s.err
	}
	s.launched.Add(1)
	s.waiting = append(s.waiting, l)
	if !s.driven {
		s.driven = true
		go s.drive()
	}
	s.driver.Wake()
	return nil
}

// drive runs what is waiting until the stream is closed.
func (s *hostStream) drive() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return
			}
			_ = s.driver.Park(context.Background()) // which does not end
			continue
		}
		l := s.waiting[0]
		s.waiting[0] = Launch{} // which holds what the kernel uses
		if len(s.waiting) > 1 {
			s.waiting = s.waiting[1:]
		} else {
			s.waiting = s.waiting[:0]
		}
		s.running = l.Func.Name
		failed := s.err != nil
		s.mu.Unlock()
		s.carry(l, failed)
	}
}

// carry runs l, unless a kernel before it has failed. Should the kernel end the
// goroutine, another one drives on.
func (s *hostStream) carry(l Launch, failed bool) {
	var err error
	returned := false
	defer func() {
		s.mu.Lock()
		s.running = ""
		if s.err == nil {
			s.err = err
		}
		s.mu.Unlock()
		if l.Done != nil {
			l.Done()
		}
		s.ended.Add(1)
		if !returned {
			go s.drive()
		}
	}()
	if !failed {
		s.run(l, &err)
	}
	returned = true
}

// run executes every thread of l and stores the first failure. The last thread
// runs on this goroutine, the others on their own.
func (s *hostStream) run(l Launch, err *error) {
	var (
		others sync.WaitGroup
		first  sync.Once
	)
	defer others.Wait() // also when the last thread ends the goroutine
	threads := make([]Thread, l.Grid.Blocks*l.Grid.Threads)
	for b := range l.Grid.Blocks {
		block := newBlock(l.Grid.Threads)
		for i := range l.Grid.Threads {
			t := &threads[b*l.Grid.Threads+i]
			*t = Thread{Block: b, Blocks: l.Grid.Blocks, Index: i, Threads: l.Grid.Threads, args: l.Args, env: l.Env, ctx: s.ctx, block: block}
			run := func() {
				t.run(s.device, l.Func, func(e error) { first.Do(func() { *err = e }) })
			}
			if t == &threads[len(threads)-1] {
				run()
			} else {
				others.Go(run)
			}
		}
	}
}

func (s *hostStream) Idle() bool { return s.ended.Load() == s.launched.Load() }

func (s *hostStream) Watch(w *Waiter) { w.Watch(&s.ended) }

func (s *hostStream) Sync(ctx context.Context) error {
	upTo := s.launched.Load()
	if s.ended.Load() < upTo {
		w := NewWaiter()
		if err := w.Await(ctx, &s.ended, func(v uint64) bool { return v >= upTo }, nil); err != nil {
			return err
		}
	}
	return s.Err()
}

func (s *hostStream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *hostStream) Running() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// killGrace is for kernels to notice that they must end.
const killGrace = 1 // seconds

func (s *hostStream) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	upTo := s.launched.Load()
	s.mu.Unlock()
	s.driver.Wake()
	all := func(v uint64) bool { return v == upTo }
	w := NewWaiter()
	err := w.Await(ctx, &s.ended, all, nil)
	s.kill(ErrClosed)
	if err == nil {
		return nil
	}
	grace, cancel := context.WithTimeout(context.Background(), killGrace*1e9)
	defer cancel()
	if w.Await(grace, &s.ended, all, nil) == nil {
		return nil
	}
	return fmt.Errorf("hip: kernel %s on %s does not end", s.Running(), s.device)
}

// Thread is one thread of a kernel on the host platform.
type Thread struct {
	Block, Blocks  int // the CTA, and how many there are
	Index, Threads int // the thread in its CTA, and how many the CTA has

	args  []Arg
	env   any
	ctx   context.Context
	block *block
	held  []*Memory  // until the thread ends
	few   [4]*Memory // held, unless there are more

	waiter *Waiter // made by the first Await
	unbind func() bool
}

// Arg is argument i's bits; a kernel launched with fewer arguments fails.
func (t *Thread) Arg(i int) uint64 {
	if i >= len(t.args) {
		t.Fail(fmt.Errorf("argument %d is missing: it was launched with %d", i, len(t.args)))
	}
	return t.args[i].Bits
}

// Env is what the launch carried for the kernel besides its arguments.
func (t *Thread) Env() any { return t.env }

// NArg is how many arguments the kernel was launched with.
func (t *Thread) NArg() int { return len(t.args) }

// Resolve finds the allocation that holds [addr, addr+n), which stays mapped
// until the thread ends, and the offset of addr in it. The error is an
// *AddressError.
func (t *Thread) Resolve(addr uint64, n int64) (*Memory, int64, error) {
	for _, m := range t.held {
		if off, holds := m.Offset(addr, n); holds {
			return m, off, nil
		}
	}
	m, off, err := Resolve(addr, n)
	if err == nil {
		t.held = append(t.held, m)
	}
	return m, off, err
}

// Bytes is the n bytes at addr, which stay mapped until the thread ends. A
// range outside registered memory fails the kernel.
func (t *Thread) Bytes(addr uint64, n int64) []byte {
	m, off, err := t.Resolve(addr, n)
	if err != nil {
		t.Fail(err)
	}
	return m.Bytes(off, n)
}

// Word is the word at addr, which stays mapped until the thread ends. An
// address outside registered memory, or not a multiple of 8, fails the kernel.
func (t *Thread) Word(addr uint64) *Word {
	if addr&7 != 0 {
		t.Fail(&AddressError{Addr: addr, Bytes: 8, Unaligned: true})
	}
	m, off, err := t.Resolve(addr, 8)
	if err != nil {
		t.Fail(err)
	}
	return m.Word(off)
}

// Context ends when the kernel must: everything that waits in a kernel waits
// under it.
func (t *Thread) Context() context.Context { return t.ctx }

// Await waits until ready(word's value) holds. The error is why the kernel must
// end first. A thread waits for one word at a time: ready must not wait itself.
func (t *Thread) Await(word *Word, ready func(uint64) bool) error {
	if t.waiter == nil {
		t.waiter = NewWaiter()
		t.unbind = t.waiter.bind(t.ctx)
	}
	return t.waiter.Await(t.ctx, word, ready, nil)
}

// Fail ends the kernel with err, which becomes the error of its stream.
func (t *Thread) Fail(err error) { panic(failure{err}) }

type failure struct{ err error }

// Barrier waits until every thread of the CTA has reached it. What they wrote
// before it is seen by all after it.
func (t *Thread) Barrier() {
	if t.Threads > 1 {
		t.block.wait()
	}
}

// Uniform gives every thread of the CTA what thread 0 passed.
func (t *Thread) Uniform(v uint64) uint64 {
	if t.Threads == 1 {
		return v
	}
	if t.Index == 0 {
		t.block.shared = v
	}
	t.block.wait()
	v = t.block.shared
	t.block.wait()
	return v
}

// run is the thread's life, on a goroutine that it may end: so a failure is
// told, not returned. A thread of a CTA that has failed elsewhere ends at its
// next barrier without a failure of its own.
func (t *Thread) run(device string, f *Function, failed func(error)) {
	returned := false
	defer func() {
		for _, m := range t.held {
			m.Release()
		}
		if t.unbind != nil {
			t.unbind()
		}
		if returned {
			return
		}
		e := &KernelError{Device: device, Kernel: f.Name, Block: t.Block, Thread: t.Index}
		switch v := recover().(type) {
		case nil: // runtime.Goexit
			if t.block.isBroken() {
				return
			}
			e.Err = errors.New("it called runtime.Goexit")
		case failure:
			e.Err = v.err
		default:
			e.Err, e.Stack = fmt.Errorf("panic: %v", v), string(debug.Stack())
		}
		t.block.abandon()
		failed(e)
	}()
	t.held = t.few[:0]
	f.Go(t)
	returned = true
}

// block is what the threads of one CTA share.
type block struct {
	threads int
	shared  uint64

	mu     sync.Mutex
	cond   sync.Cond
	here   int
	phase  uint64
	broken bool // a thread has failed: nobody may wait for it
}

func newBlock(threads int) *block {
	b := &block{threads: threads}
	b.cond.L = &b.mu
	return b
}

func (b *block) wait() {
	b.mu.Lock()
	b.here++
	if b.here == b.threads && !b.broken {
		b.here = 0
		b.phase++
		b.cond.Broadcast()
		b.mu.Unlock()
		return
	}
	for phase := b.phase; phase == b.phase && !b.broken; {
		b.cond.Wait()
	}
	broken := b.broken
	b.mu.Unlock()
	if broken {
		runtime.Goexit()
	}
}

func (b *block) abandon() {
	b.mu.Lock()
	b.broken = true
	b.mu.Unlock()
	b.cond.Broadcast()
}

func (b *block) isBroken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}
