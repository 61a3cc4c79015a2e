package copyengine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
)

// Endpoint is a place where a rank lives. Ranks of different worlds that live
// at the same endpoint share its queues.
type Endpoint struct {
	Platform string
	Device   int
	Memory   string // the kind of memory that the rank's heap uses
	Slot     int    // tells apart ranks that live at the same place
}

func (e Endpoint) String() string {
	s := fmt.Sprintf("%s:%d", e.Platform, e.Device)
	if e.Memory != "" {
		s += "/" + e.Memory
	}
	if e.Slot > 0 {
		s += fmt.Sprintf("#%d", e.Slot)
	}
	return s
}

// Config says how a Node makes its queues. The zero value is right for use.
type Config struct {
	RingBytes    int64         // of each ring: a power of two, at least 4 KiB; 0 means 8 MiB
	ProbeTimeout time.Duration // for a new queue to answer; 0 means 5 s
	// StallTimeout is how long a GPU's copy engine may stand still while nothing
	// holds it, until its queue counts as faulted; 0 means 10 s.
	StallTimeout time.Duration
	// Inject makes steps of a preparation fail, Intercept sees each packet before
	// the software engine of queue from → to executes it, and Written sees each
	// packet that was written to a ring, and where. They are for tests.
	Inject    inject.Func
	Intercept func(from, to Endpoint, at uint64, p *sdma.Packet) error
	Written   func(from, to Endpoint, at uint64, p *sdma.Packet)
}

// DefaultRingBytes is the size of a ring where Config does not say.
const DefaultRingBytes = 8 << 20

// Node owns the queues of one machine. Worlds that share a Node share its
// queues.
type Node struct {
	cfg Config

	mu     sync.Mutex
	queues map[queueKey]*Queue
	nextID int
}

type queueKey struct {
	from, to Endpoint
	kernel   bool // carries copies that kernels start themselves
}

// NewNode returns a node without queues.
func NewNode(cfg Config) (*Node, error) {
	if cfg.RingBytes == 0 {
		cfg.RingBytes = DefaultRingBytes
	}
	if cfg.ProbeTimeout == 0 {
		cfg.ProbeTimeout = 5 * time.Second
	}
	if cfg.StallTimeout == 0 {
		cfg.StallTimeout = 10 * time.Second
	}
	if err := sdma.CheckRingSize(cfg.RingBytes); err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, queues: map[queueKey]*Queue{}}, nil
}

// Inject is what tests have step meet on rank.
func (n *Node) Inject(step inject.Step, rank int) error { return n.cfg.Inject.At(step, rank) }

// Acquire returns the host queue from one endpoint to another, made and probed
// now if there is none yet, and counts one more user. dev is from's device.
func (n *Node) Acquire(ctx context.Context, dev hip.Device, from, to Endpoint) (*Queue, error) {
	return n.acquire(ctx, dev, queueKey{from: from, to: to})
}

// AcquireKernel is Acquire for the queue that carries the copies which kernels
// start themselves.
func (n *Node) AcquireKernel(ctx context.Context, dev hip.Device, from, to Endpoint) (*Queue, error) {
	return n.acquire(ctx, dev, queueKey{from: from, to: to, kernel: true})
}

func (n *Node) acquire(ctx context.Context, dev hip.Device, key queueKey) (*Queue, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q := n.queues[key]; q != nil {
		q.users++
		return q, nil
	}
	q := &Queue{key: key, id: n.nextID, node: n, dev: dev, users: 1, maker: newHardware, ended: true}
	if err := q.make(ctx); err != nil {
		return nil, err
	}
	q.ledger.limits, q.ledger.name = q.hw.Limits(), q.Name()
	n.nextID++
	n.queues[key] = q
	return q, nil
}

// Release gives back one use of q. The last one ends the queue.
func (n *Node) Release(q *Queue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(n.queues, q.key)
		q.end()
	}
}

// Queues are the node's queues in the order in which they were made.
func (n *Node) Queues() []*Queue {
	n.mu.Lock()
	defer n.mu.Unlock()
	qs := make([]*Queue, 0, len(n.queues))
	for _, q := range n.queues {
		qs = append(qs, q)
	}
	slices.SortFunc(qs, func(a, b *Queue) int { return a.id - b.id })
	return qs
}
