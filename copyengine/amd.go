package copyengine

import (
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

func init() { makers["amd"] = newAMDHardware }

// amdEngine is a user-mode queue of a GPU's copy engine.
type amdEngine struct {
	queue *hip.SDMAQueue
	page  *hip.Memory // that the probe's fence writes to
	watch *watchdog
}

// amdDoorbell rings the device's doorbell.
type amdDoorbell struct{ queue *hip.SDMAQueue }

func (d amdDoorbell) Ring(count uint64) { d.queue.Tell(count) }

func newAMDHardware(q *Queue) (Hardware, error) {
	dev, ok := q.dev.(hip.SDMADevice)
	if !ok {
		return nil, fmt.Errorf("copyengine: %s makes no SDMA queues", q.dev.Name())
	}
	e := &amdEngine{}
	var err error
	if e.page, err = dev.AllocHost(pointerPage); err != nil {
		return nil, err
	}
	if e.queue, err = dev.NewSDMAQueue(q.key.to.Device, q.node.cfg.RingBytes); err != nil {
		e.page.Free()
		return nil, err
	}
	h, err := newRing(q, e, ringParts{
		bytes: e.queue.Ring, read: e.queue.Read, write: e.queue.Write, doorbell: amdDoorbell{e.queue},
		fence: e.page.Word(0), fenceAddr: e.page.Addr(),
		limits: copyLimits{largest: e.queue.Largest, window: e.queue.Window},
	})
	if err != nil {
		e.free()
		return nil, err
	}
	e.watch = startWatchdog(h, e.queue, q.node.cfg.StallTimeout)
	return h, nil
}

func (e *amdEngine) name() string { return e.queue.Engine }

func (e *amdEngine) rung() { e.watch.wake() }

// stats: the engine counts nothing, and nobody sees when its gates open.
func (e *amdEngine) stats(carried Stats) Stats { return carried }

func (e *amdEngine) close() {
	e.watch.stop()
	e.free()
}

func (e *amdEngine) free() {
	// A queue that the driver does not end is one that it has lost already.
	_ = e.queue.Close()
	e.page.Free()
}

// StallError says that an engine does not go on though nothing holds it.
type StallError struct {
	At     uint64      // the count that it has read up to
	Rung   uint64      // the count that it was told of
	Packet sdma.Packet // that it is at
	After  time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("copyengine: the engine has not moved for %v: it was told of %d bytes, has read %d, and is at %v, which nothing holds", e.After, e.Rung, e.At, &e.Packet)
}
