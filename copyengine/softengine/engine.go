package softengine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

// Config is one queue as its engine sees it.
type Config struct {
	// Ring is the ring's bytes, a power of two of at least sdma.MinRingBytes.
	Ring []byte
	// Read is the count of bytes completed, which the engine advances packet
	// by packet; it starts at what the word holds. Doorbell is the count of
	// bytes that the engine may read.
	Read, Doorbell *hip.Word
	// Fault, if not nil, is called once, from the engine's goroutine, when the
	// queue stops for an error, a *FaultError. It must not call Stop.
	Fault func(error)
	// Intercept, if not nil, sees every packet before it is executed, and where
	// it lies: tests delay, change or fail packets with it. The packet is valid
	// until Intercept returns; an error faults the queue. Stop waits for it.
	Intercept func(at uint64, p *sdma.Packet) error
}

// Engine executes one queue's packets on a goroutine of its own.
type Engine struct {
	config   Config
	stopping atomic.Bool
	ended    chan struct{}
	fault    atomic.Pointer[FaultError]
	counters counters

	// The rest belongs to the goroutine.
	packet                 sdma.Packet
	waiter                 *hip.Waiter
	src, dst, gate, signal hold
	budget                 int    // bytes to copy before the next yield
	yield                  func() // runtime.Gosched
	now                    int64  // hip.Clock, or 0 if it has gone on since
	woke                   bool   // somebody waited for the packet's signal
	opened                 int64  // when the gate opened whose signal is yet to come, or 0
}

// errStopped ends the goroutine without a fault.
var errStopped = errors.New("softengine: stopped")

// Start checks c and starts the queue's engine. The error is a *ConfigError.
func Start(c Config) (*Engine, error) {
	if n := len(c.Ring); n < sdma.MinRingBytes || n&(n-1) != 0 {
		return nil, &ConfigError{fmt.Sprintf("the ring has %d bytes; it must have a power of two, at least %d", n, sdma.MinRingBytes)}
	}
	if c.Read == nil || c.Doorbell == nil {
		return nil, &ConfigError{"an engine needs a read word and a doorbell word"}
	}
	if at := c.Read.Load(); at%4 != 0 {
		return nil, &ConfigError{fmt.Sprintf("the read count is %d; packets start at multiples of 4", at)}
	}
	e := newEngine(c)
	go e.run()
	return e, nil
}

func newEngine(c Config) *Engine {
	return &Engine{config: c, ended: make(chan struct{}), waiter: hip.NewTimedWaiter(), budget: pieceBytes, yield: runtime.Gosched}
}

// Stop ends the engine and waits until it has ended: at once if it is parked,
// else behind the packet it executes, or the piece of a copy. The packet it was
// at may be done in part. Stopping twice has no effect.
func (e *Engine) Stop() {
	e.stopping.Store(true)
	e.waiter.Wake()
	<-e.ended
}

// Err is the *FaultError that stopped the queue, nil if there was none.
func (e *Engine) Err() error {
	if f := e.fault.Load(); f != nil {
		return f
	}
	return nil
}

// run is the goroutine: it follows the doorbell until it is stopped.
func (e *Engine) run() {
	defer close(e.ended)
	at := e.config.Read.Load()
	for {
		bell, err := e.awaitDoorbell(at)
		if err == nil {
			at, err = e.follow(at, bell)
		}
		if err != nil {
			e.releaseAll()
			if err != errStopped {
				e.fail(&FaultError{At: at, Packet: e.packet, Err: err})
			}
			return
		}
	}
}

// follow executes the packets from at to bell and returns how far it came.
func (e *Engine) follow(at, bell uint64) (uint64, error) {
	for at != bell {
		if err := e.step(at, bell); err != nil {
			return at, err
		}
		at += uint64(e.packet.Size)
		e.config.Read.Store(at)
		if e.woke { // who waited for the packet goes before the next
			e.woke = false
			e.yield()
		}
	}
	return at, nil
}

func (e *Engine) fail(f *FaultError) {
	e.fault.Store(f)
	if e.config.Fault != nil {
		e.config.Fault(f)
	}
}

// awaitDoorbell returns the doorbell's count when it is not at any more.
func (e *Engine) awaitDoorbell(at uint64) (uint64, error) {
	bell := e.config.Doorbell.Load()
	if bell == at {
		e.now = 0
		e.gate.release()
		if err := e.await(e.config.Doorbell, func(v uint64) bool { return v != at }); err != nil {
			return 0, err
		}
		bell = e.config.Doorbell.Load()
	}
	if new := bell - at; new > uint64(len(e.config.Ring)) || new%4 != 0 {
		e.packet = sdma.Packet{}
		return 0, fmt.Errorf("%w: count %d with %d read, in a ring of %d bytes", ErrDoorbell, bell, at, len(e.config.Ring))
	}
	return bell, nil
}

// step executes the packet at count at. It must end before bell and before the
// ring does.
func (e *Engine) step(at, bell uint64) error {
	if e.stopping.Load() {
		return errStopped
	}
	place := at & uint64(len(e.config.Ring)-1)
	left := min(bell-at, uint64(len(e.config.Ring))-place)
	if err := e.packet.Decode(e.config.Ring[place : place+left]); err != nil {
		e.packet.Size = 0
		return err
	}
	if e.config.Intercept != nil {
		if err := e.config.Intercept(at, &e.packet); err != nil {
			return err
		}
	}
	if err := e.execute(&e.packet); err != nil {
		return err
	}
	e.counters.packets.Add(1)
	return nil
}

// await waits until ready holds of word. Before it parks it lets go of all
// memory but the gate's. The error is errStopped.
func (e *Engine) await(word *hip.Word, ready func(uint64) bool) error {
	return e.waiter.Await(context.Background(), word, ready, func() error {
		if e.stopping.Load() {
			return errStopped
		}
		e.src.release()
		e.dst.release()
		e.signal.release()
		return nil
	})
}

func (e *Engine) releaseAll() {
	for _, h := range []*hold{&e.src, &e.dst, &e.gate, &e.signal} {
		h.release()
	}
}
