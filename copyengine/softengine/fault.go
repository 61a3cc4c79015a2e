package softengine

import (
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

var (
	// ErrDoorbell: the doorbell's count cannot be one of this ring.
	ErrDoorbell = errors.New("softengine: impossible doorbell")
	// ErrRetries: a poll looked as often as its packet allows, in vain.
	ErrRetries = errors.New("softengine: the poll's retries ran out")
)

// FaultError is why a queue stopped.
type FaultError struct {
	At     uint64      // the read count of the packet
	Packet sdma.Packet // of size 0 if there was none to decode
	Err    error
}

func (e *FaultError) Error() string {
	if e.Packet.Size == 0 {
		return fmt.Sprintf("softengine: the queue stopped at count %d: %v", e.At, e.Err)
	}
	return fmt.Sprintf("softengine: the queue stopped at count %d, at %v: %v", e.At, &e.Packet, e.Err)
}

func (e *FaultError) Unwrap() error { return e.Err }

// ConfigError says why an engine cannot start.
type ConfigError struct{ Detail string }

func (e *ConfigError) Error() string { return "softengine: " + e.Detail }
