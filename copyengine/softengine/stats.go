package softengine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/histogram"
)

// Stats is what an engine has done since it started.
type Stats struct {
	Packets uint64        // completed
	Copies  uint64        // of those
	Bytes   uint64        // moved by copies
	Waits   uint64        // polls that found their gate closed, also the present one
	Waited  time.Duration // at closed gates, the present one included
	// GateWait has the waits at closed gates that have ended. Delivery has, for
	// each signal behind a poll, the time from the write that opened the gate,
	// or from when the engine came to it if it was open, to the signal.
	GateWait, Delivery histogram.Snapshot
}

// counters is Stats as the engine's goroutine keeps it.
type counters struct {
	packets, copies, bytes, waits atomic.Uint64

	mu     sync.Mutex // so that the time waited never seems to shrink
	waited int64      // ns, of waits that have ended
	since  int64      // hip.Clock when the present wait began, or 0

	gateWait, delivery histogram.Histogram
}

func (c *counters) waitBegins(now int64) {
	c.mu.Lock()
	c.since = now
	c.mu.Unlock()
	c.waits.Add(1)
}

func (c *counters) waitEnds(now int64) {
	c.mu.Lock()
	waited := max(0, now-c.since)
	c.waited += waited
	c.since = 0
	c.mu.Unlock()
	c.gateWait.Observe(time.Duration(waited))
}

func (c *counters) timeWaited() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == 0 {
		return time.Duration(c.waited)
	}
	return time.Duration(c.waited + hip.Clock() - c.since)
}

// Stats is a view of the counts as the engine runs on; each is exact and only
// grows, but they may be of slightly different moments.
func (e *Engine) Stats() Stats {
	c := &e.counters
	return Stats{
		Packets: c.packets.Load(), Copies: c.copies.Load(), Bytes: c.bytes.Load(),
		Waits: c.waits.Load(), Waited: c.timeWaited(),
		GateWait: c.gateWait.Snapshot(), Delivery: c.delivery.Snapshot(),
	}
}
