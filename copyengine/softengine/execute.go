package softengine

import (
	"runtime"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func (e *Engine) execute(p *sdma.Packet) error {
	switch p.Op {
	case sdma.OpCopyLinear, sdma.OpCopyWindow:
		e.now = 0
		return e.copy(&p.Copy)
	case sdma.OpPoll:
		return e.poll(&p.Poll)
	case sdma.OpAtomic:
		return e.atomic(&p.Atomic)
	case sdma.OpFence:
		word, half, err := e.signal.word(p.Addr)
		if err != nil {
			return err
		}
		word.StoreHalf(half, p.Value)
	case sdma.OpTimestamp:
		word, _, err := e.signal.word(p.Addr)
		if err != nil {
			return err
		}
		word.Store(uint64(hip.Clock()))
	}
	return nil // NOP and TRAP: there is nobody to interrupt
}

// poll waits until the gate opens. A gate that is closed for ever costs
// nothing: the goroutine parks, and holds no memory but the gate's.
func (e *Engine) poll(p *sdma.Poll) error {
	word, half, err := e.gate.word(p.Addr)
	if err != nil {
		return err
	}
	open := func(v uint64) bool {
		if p.Holds(uint32(v >> (32 * half))) {
			return true
		}
		e.waiter.WrittenAt() // that write did not open it
		return false
	}
	if open(word.Load()) {
		e.opened = e.clock()
		return nil
	}
	e.counters.waitBegins(e.clock())
	defer func() {
		if e.opened = e.waiter.WrittenAt(); e.opened == 0 {
			e.opened = hip.Clock()
		}
		e.now = 0
		e.counters.waitEnds(e.opened)
	}()
	if p.Retries != sdma.RetryForever {
		return e.retry(word, open, int(p.Retries))
	}
	return e.await(word, open)
}

// retry looks again as often as the packet says, at most 4094 times: too few
// to park for. Other goroutines run between two looks.
func (e *Engine) retry(word *hip.Word, open func(uint64) bool, retries int) error {
	for range retries {
		runtime.Gosched()
		if open(word.Load()) {
			return nil
		}
		if e.stopping.Load() {
			return errStopped
		}
	}
	return ErrRetries
}

func (e *Engine) atomic(a *sdma.Atomic) error {
	word, half, err := e.signal.word(a.Addr)
	if err != nil {
		return err
	}
	switch wide := a.Op.Bits() == 64; {
	case wide && a.Op.Compares():
		word.CompareAndSwap(a.Compare, a.Operand)
	case wide:
		e.woke = word.Signal(a.Operand)
	default:
		atomicHalf(word, 32*half, a)
	}
	e.signalled()
	return nil
}

// clock is the time, read anew only behind what takes time.
func (e *Engine) clock() int64 {
	if e.now == 0 {
		e.now = hip.Clock()
	}
	return e.now
}

// signalled notes how long the step took whose gate was passed last.
func (e *Engine) signalled() {
	if e.opened != 0 {
		e.counters.delivery.Observe(time.Duration(e.clock() - e.opened))
		e.opened = 0
	}
}

// atomicHalf changes the 32 bits of word from bit shift on and leaves the rest.
func atomicHalf(word *hip.Word, shift int, a *sdma.Atomic) {
	for {
		old := word.Load()
		v, next := uint32(old>>shift), uint32(a.Operand)
		if !a.Op.Compares() {
			next += v
		} else if v != uint32(a.Compare) {
			return
		}
		if word.CompareAndSwap(old, old&^(0xffffffff<<shift)|uint64(next)<<shift) {
			return
		}
	}
}
