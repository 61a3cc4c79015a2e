package hip

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// ROCmError is what HIP, the HSA runtime or the KFD device answered to a call.
// errors.Is holds for two of the same code.
type ROCmError = rocm.Error

// PeerError says that a device cannot reach another's memory.
type PeerError struct {
	Device, Peer string
	Err          error // what the runtime says, nil if it just cannot
}

func (e *PeerError) Error() string {
	s := fmt.Sprintf("hip: %s cannot reach the memory of %s", e.Device, e.Peer)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s + "; both must be in one node whose links allow peer access"
}

func (e *PeerError) Unwrap() error { return e.Err }

// TopologyError says that the driver's topology does not have a device.
type TopologyError struct {
	Device   string
	Location string // on PCI
	Dir      string
	Setting  string // the environment variable that names another
}

func (e *TopologyError) Error() string {
	return fmt.Sprintf("hip: %s at PCI %s is not in the topology at %s, by which its copy engines are found; make sysfs visible here, or name it in %s", e.Device, e.Location, e.Dir, e.Setting)
}
