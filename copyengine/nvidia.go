package copyengine

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip"
)

// On NVIDIA's platform the driver's streams carry what has one side in a
// device's memory. Between two heaps in host memory the driver's copies would
// block their caller, so there a software engine works, on a ring in plain
// memory.

func init() { makers["nvidia"] = newNVIDIAHardware }

func newNVIDIAHardware(q *Queue) (Hardware, error) {
	from, to := q.key.from, q.key.to
	platform, err := hip.Open(from.Platform)
	if err != nil {
		return nil, err
	}
	if from.Memory == string(hip.HostMemory) && to.Memory == string(hip.HostMemory) {
		host, err := hip.Open("host")
		if err != nil {
			return nil, err
		}
		dev, err := host.Device(0)
		if err != nil {
			return nil, err
		}
		return newHostHardware(q, dev)
	}
	// The stream is one of the device whose memory the copy has at its source,
	// or else at its destination.
	at, far := from.Device, to.Device
	if from.Memory == string(hip.HostMemory) {
		at, far = to.Device, from.Device
	}
	dev, err := platform.Device(at)
	if err != nil {
		return nil, err
	}
	copies, ok := dev.(hip.CopyDevice)
	if !ok {
		return nil, fmt.Errorf("copyengine: %s has no streams of copies", dev.Name())
	}
	if from.Memory == to.Memory && at != far {
		other, err := platform.Device(far)
		if err != nil {
			return nil, err
		}
		if err := copies.Reach(other); err != nil {
			return nil, err
		}
	}
	return newStreamHardware(copies, q.Name(), engineOf(from, to), func(err error) { q.faulted(engineOf(from, to), err) })
}

// engineOf says what carries copies from one endpoint to another.
func engineOf(from, to Endpoint) string {
	if OnComputeUnits(from, to) {
		return fmt.Sprintf("compute units of %s:%d, on a stream", from.Platform, from.Device)
	}
	at := from.Device
	if from.Memory == string(hip.HostMemory) {
		at = to.Device
	}
	return fmt.Sprintf("copy engine of %s:%d, %s to %s, on a stream", from.Platform, at, from.Memory, to.Memory)
}

// OnComputeUnits reports whether copies from one endpoint to another take
// compute units: NVIDIA's driver copies within one device with a kernel.
func OnComputeUnits(from, to Endpoint) bool {
	own := string(hip.DeviceMemory)
	return from.Platform == "nvidia" && from.Device == to.Device && from.Memory == own && to.Memory == own
}
