package hip

// SDMADevice is a device whose copy engines take SDMA packets from rings that a
// program writes itself.
type SDMADevice interface {
	Device
	// NewSDMAQueue makes a queue for copies to a peer (another device of the
	// platform, or the device itself) with a ring of so many bytes, a power of
	// two. The device reaches the peer's memory from then on. The error is an
	// *EngineLimitError, a *PeerError, or what the runtime and the driver say.
	NewSDMAQueue(peer int, bytes int64) (*SDMAQueue, error)
}

// SDMAQueue is a user-mode queue of one copy engine.
type SDMAQueue struct {
	// Ring is the memory that packets are written to. Read and Write count
	// bytes: the engine advances Read, its user Write.
	Ring        []byte
	Read, Write *Word
	// Engine names the engine, for people.
	Engine string
	// Largest is the most bytes that one copy may move, and Window the most that
	// a window's pitch, width or height can be.
	Largest, Window int64

	back sdmaBack
}

// sdmaBack is the platform's part of a queue.
type sdmaBack interface {
	tell(count uint64)
	load(addr uint64) (uint64, error)
	err() error
	end() error
}

// Tell stores count in the doorbell: the engine may read so many bytes. What
// was written before is seen by the engine before that.
func (q *SDMAQueue) Tell(count uint64) { q.back.tell(count) }

// Load reads the 64-bit word at an address that the queue's device reaches,
// a multiple of 8.
func (q *SDMAQueue) Load(addr uint64) (uint64, error) { return q.back.load(addr) }

// Err is what the runtime reports of the queue, nil if nothing.
func (q *SDMAQueue) Err() error { return q.back.err() }

// Close takes the queue from its engine, whatever that is doing, and frees it.
// Its ring and words must not be used any more. Closing twice has no effect.
func (q *SDMAQueue) Close() error { return q.back.end() }
