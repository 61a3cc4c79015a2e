package rank

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/timeline"
)

// Node owns the queues between the places where ranks live. Worlds that share
// a Node share its queues.
type Node = copyengine.Node

// NodeConfig says how a Node makes its queues.
type NodeConfig = copyengine.Config

// NewNode returns a node of its own; most programs use the process's.
func NewNode(cfg NodeConfig) (*Node, error) { return copyengine.NewNode(cfg) }

// processNode is the node of worlds that do not name one.
var processNode = sync.OnceValues(func() (*Node, error) { return NewNode(NodeConfig{}) })

// Config describes a world.
type Config struct {
	Ranks     int    // at least 1
	HeapBytes int64  // of the symmetric heap on each rank; 0 means 64 MiB
	Platform  string // "auto", "host", …; "" means auto
	Node      *Node  // nil means the process's node
	// Placement says where each rank lives; nil places them in turn on the
	// platform's devices, the first rank of a device in the device's memory and
	// the others in the host's, where the two differ.
	Placement []Placement
	// AllowComputeCopies allows ranks whose heaps lie in the memory of one
	// device that copies within itself with compute units.
	AllowComputeCopies bool
	// CloseTimeout bounds how long closing waits for copies and kernels that are
	// still going on; 0 means 10 s.
	CloseTimeout time.Duration
	// Timeline, if not nil, gets every round. Then kernels and copy engines stamp
	// what they do, which costs room on the queues.
	Timeline *timeline.Recorder
}

// MaxRanks bounds a world: its queues grow with the square of the ranks.
const MaxRanks = 64

const (
	defaultHeapBytes    = 64 << 20
	defaultCloseTimeout = 10 * time.Second
)

// World is N ranks with a symmetric heap and the queues between them.
type World struct {
	name     string
	cfg      Config
	platform hip.Platform
	node     *Node
	heap     *heap.Heap
	ranks    []*Rank
	meeting  *rendezvous
	life     context.Context // of what goes on behind the ranks' backs
	end      context.CancelFunc
	finished sync.WaitGroup // goroutines under life
	tally    Tally

	mu      sync.Mutex
	running bool
	closed  bool
	tenants []Tenant
	plans   int // plans made so far, for names
}

// Tenant is what lives in a world and has to be closed with it, such as a
// plan.
type Tenant interface {
	fmt.Stringer
	// Left is told when a rank's body has ended.
	Left()
	// Abandon does for every rank that has not called Close what Close does.
	Abandon()
	// Done is closed once nothing touches the tenant's memory any more.
	Done() <-chan struct{}
}

var worlds atomic.Uint64 // worlds opened so far, for names

// Run opens a world, runs body on every rank and closes the world. See
// World.Run for its errors.
func Run(ctx context.Context, cfg Config, body func(context.Context, *Rank) error) error {
	w, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	err = w.Run(ctx, body)
	return errors.Join(err, w.Close(context.WithoutCancel(ctx)))
}

// Open makes a world: a heap on every rank, and the queues between them, each
// of them probed. Nothing is left behind when it fails.
func Open(ctx context.Context, cfg Config) (_ *World, err error) {
	if cfg.HeapBytes == 0 {
		cfg.HeapBytes = defaultHeapBytes
	}
	if cfg.CloseTimeout == 0 {
		cfg.CloseTimeout = defaultCloseTimeout
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Node == nil {
		if cfg.Node, err = processNode(); err != nil {
			return nil, err
		}
	}
	platform, err := hip.Open(cfg.Platform)
	if err != nil {
		return nil, err
	}
	w := &World{
		name: fmt.Sprintf("world %d", worlds.Add(1)),
		cfg:  cfg, platform: platform, node: cfg.Node, meeting: newRendezvous(cfg.Ranks),
	}
	w.tally.Ranks = make([]RankTally, cfg.Ranks)
	w.life, w.end = context.WithCancel(context.Background())
	if err := w.open(ctx); err != nil {
		w.end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.CloseTimeout)
		defer cancel()
		for _, r := range w.ranks {
			for _, s := range r.streams {
				err = errors.Join(err, s.hip.Close(ctx))
			}
		}
		w.tearDown(true)
		return nil, err
	}
	return w, nil
}

func (c *Config) check() error {
	switch {
	case c.Ranks < 1 || c.Ranks > MaxRanks:
		return &ConfigError{"Ranks", c.Ranks, fmt.Sprintf("a world has 1 to %d ranks", MaxRanks)}
	case c.HeapBytes < 0:
		return &ConfigError{"HeapBytes", c.HeapBytes, "a heap has a positive number of bytes"}
	case c.CloseTimeout < 0:
		return &ConfigError{"CloseTimeout", c.CloseTimeout, "it is a positive duration"}
	}
	return nil
}

// open gives the world its ranks, heap and queues.
func (w *World) open(ctx context.Context) error {
	places, err := w.placements()
	if err != nil {
		return err
	}
	ends, err := w.endpoints(places)
	if err != nil {
		return err
	}
	var mems []*hip.Memory
	for i, p := range places {
		mem, err := w.addRank(p, ends[i])
		if err != nil {
			freeAll(mems)
			return err
		}
		mems = append(mems, mem)
	}
	if w.heap, err = heap.New(mems); err != nil {
		freeAll(mems)
		return err
	}
	for _, r := range w.ranks {
		// The next rank first, so that in a round no two ranks begin with the same
		// peer, whose link they would share.
		for i := 1; i < len(w.ranks); i++ {
			peer := w.ranks[(r.id+i)%len(w.ranks)]
			if r.queues[peer.id], err = w.node.Acquire(ctx, r.device, r.endpoint, peer.endpoint); err != nil {
				return err
			}
		}
	}
	return w.prove(ctx)
}

// addRank makes the next rank and the memory of its heap.
func (w *World) addRank(p Placement, end copyengine.Endpoint) (*hip.Memory, error) {
	dev, err := w.platform.Device(p.Device)
	if err != nil {
		return nil, err
	}
	r := &Rank{id: len(w.ranks), world: w, device: dev, place: p, endpoint: end, queues: make([]*copyengine.Queue, w.cfg.Ranks)}
	r.copier.rank = r
	w.ranks = append(w.ranks, r)
	if dev.Properties().Modules {
		if r.builtin, err = kernels.LoadBuiltin(dev); err != nil {
			return nil, err
		}
	}
	if r.stream, err = r.NewStream(); err != nil {
		return nil, err
	}
	if p.Memory == hip.HostMemory {
		return dev.AllocHost(w.cfg.HeapBytes)
	}
	return dev.Alloc(w.cfg.HeapBytes)
}

// prove has every device show that kernels run beside waiting queues.
func (w *World) prove(ctx context.Context) error {
	proven := map[string]bool{}
	for _, r := range w.ranks {
		if proven[r.device.Name()] {
			continue
		}
		proven[r.device.Name()] = true
		if err := r.device.Prove(ctx, r.builtin["evaluate"]); err != nil {
			return err
		}
	}
	return nil
}

func freeAll(mems []*hip.Memory) {
	for _, m := range mems {
		m.Free()
	}
}

// Name identifies the world in errors and metrics.
func (w *World) Name() string { return w.name }

// Size is the number of ranks.
func (w *World) Size() int { return len(w.ranks) }

// Heap is the world's symmetric heap.
func (w *World) Heap() *heap.Heap { return w.heap }

// Timeline is the recorder of the world's Config, or nil.
func (w *World) Timeline() *timeline.Recorder { return w.cfg.Timeline }

// Node owns the world's queues.
func (w *World) Node() *Node { return w.node }

// Run runs body once for every rank, each on a goroutine of its own, and waits
// for all of them. When one fails, the others' contexts end with its error as
// their cause. The error joins an *Error for every rank that failed of itself;
// a panic in a body is recovered and becomes its rank's *PanicError. What the
// ranks leave open stays open for another Run, unless this one failed: then it
// is closed. The error is ErrClosed in a closed world, and ErrRunning while
// another Run goes on.
func (w *World) Run(ctx context.Context, body func(context.Context, *Rank) error) error {
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return fmt.Errorf("run in %s: %w", w.name, ErrClosed)
	case w.running:
		w.mu.Unlock()
		return fmt.Errorf("run in %s: %w", w.name, ErrRunning)
	}
	w.running = true
	w.mu.Unlock()
	w.meeting.reset()

	group, ctx := errgroup.WithContext(ctx)
	errs := make([]error, len(w.ranks))
	for i, r := range w.ranks {
		group.Go(func() error {
			errs[i] = r.run(ctx, body)
			return errs[i]
		})
	}
	if group.Wait() != nil {
		w.abandon()
	}
	w.mu.Lock()
	w.running = false
	w.mu.Unlock()
	return joinOwn(errs)
}

// joinOwn joins the errors that ranks have of themselves. One that passes
// another rank's on is left out, and a verdict that ranks share comes once.
func joinOwn(errs []error) error {
	var own []error
	for i, err := range errs {
		if err != nil && !passesOn(err, errs, i) && !sharesVerdict(err, own) {
			own = append(own, err)
		}
	}
	return errors.Join(own...)
}

func passesOn(err error, errs []error, i int) bool {
	for j, other := range errs {
		if j != i && other != nil && errors.Is(err, other) {
			return true
		}
	}
	return false
}

func sharesVerdict(err error, with []error) bool {
	v := verdictOf(err)
	return v != nil && slices.ContainsFunc(with, func(o error) bool { return verdictOf(o) == v })
}

// verdictOf is the verdict of a collective that err wraps, or nil.
func verdictOf(err error) error {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) {
		case *VoteError, *VerdictError, *MismatchError, *WithdrawnError:
			return err
		}
	}
	return nil
}

// run is the life of a rank's body, on a goroutine of its own, since a body
// may end its goroutine.
func (r *Rank) run(ctx context.Context, body func(context.Context, *Rank) error) error {
	ended := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: string(debug.Stack())}
			}
			if err == nil {
				err = r.KernelErr()
			}
			ended <- err
		}()
		err = body(ctx, r)
	}()
	err := <-ended
	why := ErrReturned
	if err != nil {
		err = &Error{Rank: r.id, Err: err}
		why = err
	}
	r.ended = err
	r.world.meeting.leave(r.id, why)
	for _, t := range r.world.Tenants() {
		t.Left()
	}
	return err
}

// Gone is why a rank's body has ended, nil while it runs.
func (w *World) Gone(rank int) error { return w.meeting.gone(rank) }

// Register makes t close with the world. The error is ErrClosed.
func (w *World) Register(t Tenant) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.tenants = append(w.tenants, t)
	return nil
}

// Unregister forgets t, which is done.
func (w *World) Unregister(t Tenant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tenants = slices.DeleteFunc(w.tenants, func(o Tenant) bool { return o == t })
}

// Tenants are what lives in the world now.
func (w *World) Tenants() []Tenant {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.tenants)
}

// NextPlan numbers plans, for their names.
func (w *World) NextPlan() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans++
	return w.plans
}

// Go runs f in the background until it returns; the context of f ends when
// the world has waited long enough for it.
func (w *World) Go(f func(context.Context)) {
	w.finished.Go(func() { f(w.life) })
}

// abandon closes what lives in the world without its ranks' help.
func (w *World) abandon() {
	for _, r := range w.ranks {
		for _, q := range r.queues {
			if q != nil {
				q.ReleaseFlags(w.name)
			}
		}
	}
	for _, t := range w.Tenants() {
		t.Abandon()
	}
}

// Close ends the world: it closes what its ranks left open, waits for copies
// and kernels within Config.CloseTimeout and under ctx, and gives everything
// back. The error names what did not end by then, whose memory is never used
// again, and kernels that failed after their rank's body had ended; it is
// ErrRunning while ranks run. Closing twice has no effect.
func (w *World) Close(ctx context.Context) error {
	w.mu.Lock()
	if w.closed || w.running {
		err := error(nil)
		if w.running {
			err = fmt.Errorf("close of %s: %w", w.name, ErrRunning)
		}
		w.mu.Unlock()
		return err
	}
	w.closed = true
	w.mu.Unlock()
	w.meeting.end()

	ctx, cancel := context.WithTimeout(ctx, w.cfg.CloseTimeout)
	defer cancel()
	w.abandon()
	var failed, stuck []error
	for _, r := range w.ranks {
		stuck = append(stuck, r.end(ctx))
		failed = append(failed, r.unheard())
	}
	for _, t := range w.Tenants() {
		stuck = append(stuck, w.awaitDone(ctx, t))
	}
	w.end()
	w.finished.Wait()
	err := errors.Join(stuck...)
	w.tearDown(err == nil)
	return errors.Join(append(failed, err)...)
}

// end closes the rank's streams and waits for what its kernels have put.
func (r *Rank) end(ctx context.Context) error {
	var errs []error
	for _, s := range r.allStreams() {
		errs = append(errs, s.hip.Close(ctx))
	}
	if err := r.copier.quiet(ctx); err != nil {
		errs = append(errs, &StuckError{World: r.world.name, What: fmt.Sprintf("what kernels of rank %d have put", r.id), After: r.world.cfg.CloseTimeout, Err: err})
	}
	return errors.Join(errs...)
}

// unheard is the failure of kernels that ended behind their rank's body.
func (r *Rank) unheard() error {
	var errs []error
	for _, s := range r.allStreams() {
		err := s.hip.Err()
		if err != nil && !errors.Is(r.ended, err) && !errors.Is(err, hip.ErrClosed) { // which is our own doing
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &Error{Rank: r.id, Err: err}
	}
	return nil
}

// doneGrace is for tenants whose last kernel has just been ended.
const doneGrace = time.Second

// awaitDone waits until t is done.
func (w *World) awaitDone(ctx context.Context, t Tenant) error {
	select {
	case <-t.Done():
		return nil
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), doneGrace)
	defer cancel()
	select {
	case <-t.Done():
		return nil
	case <-grace.Done():
		return &StuckError{World: w.name, What: t.String(), After: w.cfg.CloseTimeout, Err: context.Cause(ctx)}
	}
}

// tearDown gives back the queues and, if nothing can touch it any more, the
// heap.
func (w *World) tearDown(freeHeap bool) {
	for _, r := range w.ranks {
		for _, q := range r.queues {
			if q != nil {
				w.node.Release(q)
			}
		}
		r.copier.release()
	}
	if freeHeap && w.heap != nil {
		w.heap.Close()
	}
}

// alive returns ErrClosed once the world is closed.
func (w *World) alive() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("use of %s: %w", w.name, ErrClosed)
	}
	return nil
}

// Platform is the name of the platform that the world runs on.
func (w *World) Platform() string { return w.platform.Name() }
