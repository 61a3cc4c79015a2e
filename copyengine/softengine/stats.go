package softengine

import (
	"sync/atomic"
	"time"
)

// Stats is what an engine has done since it started.
type Stats struct {
	Packets uint64        // completed
	Copies  uint64        // of those
	Bytes   uint64        // moved by copies
	Waits   uint64        // polls that found their gate closed, also the present one
	Waited  time.Duration // at closed gates, the present one included
}

// counters is Stats as the engine's goroutine keeps it.
type counters struct {
	packets, copies, bytes, waits atomic.Uint64
	waited                        atomic.Int64 // ns, of waits that have ended
	since                         atomic.Int64 // ns on the clock when the present wait began, or 0
}

// epoch is when the clock of every engine of the process began.
var epoch = time.Now()

// clock is nanoseconds since epoch, never 0.
func clock() int64 { return int64(time.Since(epoch)) + 1 }

func (c *counters) waitBegins() {
	c.waits.Add(1)
	c.since.Store(clock())
}

func (c *counters) waitEnds() {
	c.waited.Add(clock() - c.since.Load())
	c.since.Store(0)
}

// Stats is a view of the counts as the engine runs on; each is exact, but they
// may be of slightly different moments.
func (e *Engine) Stats() Stats {
	c := &e.counters
	waited := c.waited.Load()
	if since := c.since.Load(); since != 0 {
		waited += clock() - since
	}
	return Stats{
		Packets: c.packets.Load(), Copies: c.copies.Load(), Bytes: c.bytes.Load(),
		Waits: c.waits.Load(), Waited: time.Duration(waited),
	}
}
