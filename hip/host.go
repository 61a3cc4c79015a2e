package hip

import (
	"context"
	"errors"
	"fmt"
)

// maxHostDevices bounds the virtual devices, so that a slip of the pen does
// not map memory for millions of ranks.
const maxHostDevices = 1024

type hostPlatform struct{}

func (hostPlatform) Name() string { return "host" }

func (hostPlatform) Devices() int { return maxHostDevices }

func (hostPlatform) Describe() string {
	return "host: virtual devices of this machine's memory and cores"
}

func (hostPlatform) Device(i int) (Device, error) {
	if i < 0 || i >= maxHostDevices {
		return nil, fmt.Errorf("hip: the host platform has no device %d; it has devices 0 to %d", i, maxHostDevices-1)
	}
	return hostDevice(i), nil
}

// hostDevice is a virtual device: its memory and cores are the machine's.
type hostDevice int

func (d hostDevice) Name() string { return fmt.Sprintf("host:%d", int(d)) }

func (d hostDevice) Properties() Properties {
	return Properties{Arch: "go", LargestCopy: 1 << 30, ClockHertz: 1e9, HostClock: true, Memories: []MemoryKind{DeviceMemory}}
}

func (d hostDevice) Alloc(n int64) (*Memory, error) {
	if n <= 0 || n > maxHostBytes {
		return nil, &MemoryError{d.Name(), n, errors.New("one allocation has 1 byte to 1 TiB")}
	}
	b, back, err := mapBytes(n)
	if err != nil {
		return nil, &MemoryError{d.Name(), n, err}
	}
	return newMemory(b, back), nil
}

// maxHostBytes keeps an absurd size from panicking in the allocator.
const maxHostBytes = 1 << 40

func (d hostDevice) AllocHost(n int64) (*Memory, error) { return d.Alloc(n) }

func (d hostDevice) NewStream() (Stream, error) { return newHostStream(d.Name()), nil }

func (hostDevice) Load([]byte) (Module, error) { return nil, ErrNoModules }

// Prove has nothing to show: kernels and engines run on goroutines of their own.
func (hostDevice) Prove(context.Context, *Function) error { return nil }
