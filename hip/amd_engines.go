package hip

import (
	"fmt"
	"sync"

	"github.com/triggeredplans/sluice/hip/internal/kfd"
)

// queuesPerEngine is how many user-mode queues one copy engine carries.
const queuesPerEngine = 8

// quirks are devices whose topology lists engines that are not there.
var quirks = map[uint32]struct {
	why    string
	usable func(engine int) bool
}{
	// A queue on a fused-off engine takes its doorbell and then hangs for ever.
	0x74a2: {"its odd engines are fused off", func(engine int) bool { return engine%2 == 0 }},
}

// engines are the copy engines of one device, and how many queues each has.
type engines struct {
	device string
	node   *kfd.Node

	mu     sync.Mutex
	queues []int // by engine
	turn   int
}

func newEngines(device string, node *kfd.Node) *engines {
	return &engines{device: device, node: node, queues: make([]int, node.Engines+node.XGMIEngines)}
}

// choice is the engine of a queue.
type choice struct {
	engine      int
	xgmi        bool // one of those made for xGMI
	recommended bool // by the driver, for the link
}

// EngineLimitError says that a device has no engine left for a queue.
type EngineLimitError struct {
	Device, Peer string
	Engines      int // that can be used
	Limit        int // queues of each
}

func (e *EngineLimitError) Error() string {
	return fmt.Sprintf("hip: %s has no engine left for a queue to %s: its %d usable engines carry %d queues each; use fewer ranks on the device, or close a world", e.Device, e.Peer, e.Engines, e.Limit)
}

// take chooses an engine for a queue to a peer: one that the driver recommends
// for the link, else the next in turn of those made for it (xGMI engines for
// xGMI links), else the next of all. Those with fewer queues come first.
func (e *engines) take(peer string, to *kfd.Node) (choice, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	link, _ := e.node.Link(to.ID)
	for _, fits := range []func(engine int) bool{
		func(i int) bool { return link.Engines>>i&1 == 1 },
		func(i int) bool { return e.isXGMI(i) == link.XGMI },
		func(int) bool { return true },
	} {
		if i := e.next(fits); i >= 0 {
			e.queues[i]++
			return choice{engine: i, xgmi: e.isXGMI(i), recommended: link.Engines>>i&1 == 1}, nil
		}
	}
	n := 0
	for i := range e.queues {
		if e.usable(i) {
			n++
		}
	}
	return choice{}, &EngineLimitError{Device: e.device, Peer: peer, Engines: n, Limit: queuesPerEngine}
}

// next is the engine with the fewest queues among those that fit, in turn where
// several have as few; -1 if there is none with room.
func (e *engines) next(fits func(int) bool) int {
	best := -1
	for k := range e.queues {
		i := (e.turn + k) % len(e.queues)
		if !e.usable(i) || !fits(i) || e.queues[i] == queuesPerEngine {
			continue
		}
		if best < 0 || e.queues[i] < e.queues[best] {
			best = i
		}
	}
	if best >= 0 {
		e.turn = best + 1
	}
	return best
}

func (e *engines) isXGMI(engine int) bool { return engine >= e.node.Engines }

func (e *engines) usable(engine int) bool {
	q, odd := quirks[e.node.Device]
	return !odd || q.usable(engine)
}

// put gives a queue's engine back.
func (e *engines) put(c choice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues[c.engine]--
}
