package copyengine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
)

// Queue carries copies from one endpoint to another, in the order in which
// they were prepared. It is safe for use by many goroutines.
type Queue struct {
	key   queueKey
	id    int // queues are locked in the order of their ids
	node  *Node
	dev   hip.Device
	users int // under the node's lock
	maker func(*Queue) (Hardware, error)

	fault   atomic.Pointer[FaultError]
	changes hip.Word // grows with every start, flush, removal and fault
	faults  atomic.Uint64

	mu     sync.Mutex
	hw     Hardware
	ended  bool  // it has no hardware, or none that works
	last   Stats // of the hardware, once it has ended
	ledger ledger
}

// Name is "from→to" in endpoints.
func (q *Queue) Name() string {
	if q.key.kernel {
		return fmt.Sprintf("%v→%v (kernel)", q.key.from, q.key.to)
	}
	return fmt.Sprintf("%v→%v", q.key.from, q.key.to)
}

// Engine names what moves the data.
func (q *Queue) Engine() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hw.Engine()
}

// Limits are what the queue can hold.
func (q *Queue) Limits() Limits { return q.ledger.limits }

// Compile turns a chain into the form that the queue takes.
func (q *Queue) Compile(c Chain) (Program, error) {
	q.mu.Lock()
	hw := q.hw
	q.mu.Unlock()
	return hw.Compile(c)
}

// make gives the queue new hardware and probes it.
func (q *Queue) make(ctx context.Context) error {
	err := q.node.Inject(inject.Queue, q.key.from.Device)
	var hw Hardware
	if err == nil {
		hw, err = q.maker(q)
	}
	if err != nil {
		return fmt.Errorf("copyengine: making queue %s: %w", q.Name(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, q.node.cfg.ProbeTimeout)
	defer cancel()
	if err := hw.Probe(ctx); err != nil {
		hw.Close()
		return &ProbeError{Queue: q.Name(), Engine: hw.Engine(), Err: err}
	}
	q.hw, q.ended = hw, false
	return nil
}

func (q *Queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop(ErrEnded)
}

// stop ends the hardware. What was put and not carried is lost for that reason.
func (q *Queue) stop(why error) {
	if !q.ended {
		q.ledger.advance(q.hw.Passed())
		q.last = q.hw.Stats()
	}
	q.hw.Close()
	q.ended = true
	q.ledger.dropPuts(len(q.ledger.puts), why)
}

// faulted is called by the engine, which must not wait for the queue's lock:
// whoever holds it may be waiting for the engine to end.
func (q *Queue) faulted(engine string, err error) {
	f := &FaultError{Queue: q.Name(), Engine: engine, Err: err}
	if !q.fault.CompareAndSwap(nil, f) {
		return
	}
	q.faults.Add(1)
	go func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.fault.Load() != f || q.ended { // it has been made anew meanwhile, or is gone
			return
		}
		for i := range q.ledger.entries {
			if told := q.ledger.entries[i].owner.Faulted; told != nil {
				told(f)
			}
		}
		// If it cannot be made anew it stays faulted, and says so to who uses it.
		_ = q.renew(context.Background(), f)
		q.changes.Add(1)
	}()
}

// renew gives a queue that has faulted new hardware, unless plans have copies
// on it: then the last of them to go does. It is called under the lock.
func (q *Queue) renew(ctx context.Context, f *FaultError) error {
	if len(q.ledger.entries) > 0 {
		return nil
	}
	q.stop(f)
	if err := q.make(ctx); err != nil {
		return err
	}
	q.fault.Store(nil)
	return nil
}

// Fault is the *FaultError of a queue whose engine has stopped, or nil.
func (q *Queue) Fault() error {
	if f := q.fault.Load(); f != nil {
		return f
	}
	return nil
}

// usable says why nothing can be put on the queue any more. It is called under
// the lock.
func (q *Queue) usable() error {
	if f := q.Fault(); f != nil {
		return f
	}
	if q.ended {
		return fmt.Errorf("queue %s: %w", q.Name(), ErrEnded)
	}
	return nil
}

// look runs f under the lock after dropping what the engine has passed.
func (q *Queue) look(f func(l *ledger)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ledger.advance(q.hw.Passed())
	}
	f(&q.ledger)
}

// Watch has w woken when the engine goes on or something else about the queue
// changes. It takes at most three of w's words.
func (q *Queue) Watch(w *hip.Waiter) {
	w.Watch(&q.changes)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hw.Watch(w)
}

// await parks w until done holds. done runs under the queue's lock.
func (q *Queue) await(ctx context.Context, w *hip.Waiter, done func(l *ledger) (bool, error)) error {
	q.Watch(w)
	defer w.Unwatch()
	for {
		var ok bool
		var err error
		q.look(func(l *ledger) { ok, err = done(l) })
		if ok || err != nil {
			return err
		}
		if err := w.Park(ctx); err != nil {
			return err
		}
	}
}

// Start lets o's producer begin: it marks what o has prepared on the queues as
// started. Behind a plan of o's own world that has not started it fails with
// an *OrderError; behind another world's it waits under ctx.
func Start(ctx context.Context, w *hip.Waiter, o *Owner, queues []*Queue) error {
	for _, q := range queues {
		blocked := false
		q.look(func(l *ledger) { blocked = l.before(o, Started) != nil })
		if !blocked {
			continue
		}
		err := q.await(ctx, w, func(l *ledger) (bool, error) {
			if f := q.Fault(); f != nil {
				return false, f
			}
			e := l.before(o, Started)
			if e != nil && e.owner.World == o.World {
				return false, &OrderError{Queue: l.name, First: e.holder()}
			}
			return e == nil, nil
		})
		if err != nil {
			return err
		}
	}
	for _, q := range queues {
		q.advance(o, Started)
	}
	return nil
}

// Flush says that the gates of what o has prepared are open.
func Flush(o *Owner, queues []*Queue) {
	for _, q := range queues {
		q.advance(o, Flushed)
	}
}

func (q *Queue) advance(o *Owner, s Stage) {
	q.look(func(l *ledger) {
		if e := l.find(o); e != nil {
			e.stage = max(e.stage, s)
		}
	})
	q.changes.Add(1)
}

// Behind returns what waits ahead of o on the queue and still needs somebody
// to go on, if there is any.
func (q *Queue) Behind(o *Owner) (h Holder, waits bool) {
	q.look(func(l *ledger) {
		if e := l.before(o, Flushed); e != nil {
			h, waits = e.holder(), true
		}
	})
	return h, waits
}

// Passed reports whether the engine has executed all that o prepared.
func (q *Queue) Passed(o *Owner) bool {
	passed := false
	q.look(func(l *ledger) { passed = l.find(o) == nil })
	return passed
}

// Drain waits until the engine has executed all that o prepared, or has
// faulted.
func (q *Queue) Drain(ctx context.Context, w *hip.Waiter, o *Owner) error {
	// The engine has little left to do when the last chunk has arrived.
	if w.Spin(func() bool { return q.Passed(o) }) {
		return nil
	}
	return q.await(ctx, w, func(l *ledger) (bool, error) {
		if l.find(o) == nil {
			return true, nil
		}
		return false, q.Fault()
	})
}

// Forget removes what o has prepared on a queue that has faulted. The last
// owner to go has the queue made anew.
func (q *Queue) Forget(ctx context.Context, o *Owner) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.fault.Load()
	if f == nil {
		return nil
	}
	q.ledger.remove(o)
	q.changes.Add(1)
	return q.renew(ctx, f)
}

// Put is something that a host sends at once.
type Put struct {
	World   string
	Program Program
	// Flag, if not nil, opens the gate that the program waits for; ReleaseFlags
	// calls it.
	Flag func()
	// Done, if not nil, is called once the engine has passed the program and
	// somebody looks at the queue, or with why it never will. It must not call
	// the queue.
	Done func(lost error)
}

// Put sends a program now, behind earlier puts. It is refused while copies are
// prepared on the queue, and waits under ctx for room. The error is ErrEnded
// once the queue's last world has given it back.
func (q *Queue) Put(ctx context.Context, w *hip.Waiter, p Put) error {
	held := loadOf(p.Program)
	return q.await(ctx, w, func(l *ledger) (bool, error) {
		if err := q.usable(); err != nil {
			return false, err
		}
		switch err := l.admitPut(held); err {
		case nil:
		case errNoRoom:
			return false, nil
		default:
			return false, err
		}
		end, err := q.hw.Append(p.Program)
		if err != nil {
			return false, err
		}
		if err := q.hw.Ring(); err != nil {
			q.hw.Rollback()
			return false, err
		}
		l.pushPut(p, held, end)
		return true, nil
	})
}

// Quiet waits until everything that was put before it has been carried, or is
// lost to a fault, of which the Done of each Put tells.
func (q *Queue) Quiet(ctx context.Context, w *hip.Waiter) error {
	var upTo uint64
	var err error
	q.look(func(l *ledger) {
		if err = l.exclude("Quiet"); err == nil && len(l.puts) > 0 {
			upTo = l.puts[len(l.puts)-1].end
		}
	})
	if err != nil {
		return err
	}
	return q.await(ctx, w, func(l *ledger) (bool, error) {
		switch {
		case len(l.puts) == 0 || l.puts[0].end > upTo:
			return true, nil
		case len(l.entries) > 0: // only then a fault outlives its puts
			return false, q.Fault()
		}
		return false, nil
	})
}

// ReleaseFlags opens what the world's puts wait for.
func (q *Queue) ReleaseFlags(world string) {
	q.look(func(l *ledger) {
		for _, p := range l.puts {
			if p.Flag != nil && p.World == world {
				p.Flag()
			}
		}
	})
}

// Snapshot is a queue at one moment.
type Snapshot struct {
	Queue, Engine string
	Limits        Limits
	Held, High    int64 // what prepared copies hold, and the most they held
	Puts          int64 // what puts in flight hold
	Holders       []Holder
	Stats         Stats
	Fault         error  // that stopped the queue, until it is made anew
	Faults        uint64 // so far
}

// Snapshot says what the queue holds and has done; of a queue that its last
// world has given back, how it ended.
func (q *Queue) Snapshot() (s Snapshot) {
	q.look(func(l *ledger) {
		s = Snapshot{
			Queue: l.name, Engine: q.hw.Engine(), Limits: l.limits,
			Held: l.held.cost, High: l.high, Puts: l.putHeld.cost, Holders: l.holders(), Stats: q.last,
		}
		if !q.ended {
			s.Stats = q.hw.Stats()
		}
	})
	s.Fault, s.Faults = q.Fault(), q.faults.Load()
	return s
}
