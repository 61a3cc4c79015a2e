package copyengine

import (
	"context"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

// watchdog looks after an engine that tells nobody when it stops: while it has
// something to do, it must move unless a closed gate holds it.
type watchdog struct {
	ring     *ringHardware
	queue    *hip.SDMAQueue
	patience time.Duration
	rung     chan struct{} // of capacity 1
	cancel   context.CancelFunc
	ended    chan struct{}
}

// looksPerPatience is how often an engine is looked at before it is given up.
const looksPerPatience = 8

// longestLook bounds the time between two looks.
const longestLook = 250 * time.Millisecond

func startWatchdog(h *ringHardware, q *hip.SDMAQueue, patience time.Duration) *watchdog {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watchdog{ring: h, queue: q, patience: patience, rung: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	go w.run(ctx)
	return w
}

func (w *watchdog) wake() {
	select {
	case w.rung <- struct{}{}:
	default:
	}
}

func (w *watchdog) stop() {
	w.cancel()
	<-w.ended
}

// run sleeps while the engine has nothing to do, and ends with the first fault.
func (w *watchdog) run(ctx context.Context) {
	defer close(w.ended)
	every := max(min(w.patience/looksPerPatience, longestLook), time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-w.rung:
		case <-ctx.Done():
			return
		}
		tick.Reset(every)
		if err := w.guard(ctx, tick); err != nil {
			if ctx.Err() == nil {
				w.ring.fault(err)
			}
			return
		}
	}
}

// guard looks at every tick. It returns nil once the engine has read everything,
// and an error when it will not go on or ctx has ended.
func (w *watchdog) guard(ctx context.Context, tick *time.Ticker) error {
	last, since := w.ring.Passed(), time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.queue.Err(); err != nil {
			return err
		}
		at, told := w.ring.Passed(), w.queue.Write.Load()
		if at == told {
			return nil
		}
		p, held, err := w.held(at)
		if now := w.ring.Passed(); now != at || at != last || held {
			last, since = now, time.Now() // what held read may be gone, so its error says nothing
			continue
		}
		if err != nil {
			return err
		}
		if idle := time.Since(since); idle > w.patience {
			return &StallError{At: at, Rung: told, Packet: p, After: idle.Round(time.Millisecond)}
		}
	}
}

// held decodes the packet at a count and says whether a closed gate holds it.
func (w *watchdog) held(at uint64) (p sdma.Packet, held bool, err error) {
	ring := w.ring.parts.bytes
	if p, err = sdma.Decode(ring[at&uint64(len(ring)-1):]); err != nil || p.Op != sdma.OpPoll {
		return p, false, err
	}
	word, err := w.queue.Load(p.Poll.Addr &^ 7)
	if err != nil {
		return p, false, err
	}
	return p, !p.Poll.Holds(uint32(word >> (8 * (p.Poll.Addr & 4)))), nil
}
