package hip

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Platform is one way to reach devices: "host" needs none.
type Platform interface {
	Name() string
	// Devices is how many devices there are.
	Devices() int
	// Device returns device i, 0 ≤ i < Devices().
	Device(i int) (Device, error)
}

// Device is a place with memory of its own that runs kernels.
type Device interface {
	// Name identifies the device in errors, for example "host:0".
	Name() string
	Properties() Properties
	// Alloc returns n zeroed bytes that start on a page. It fails with a
	// *MemoryError when the device has no room for them.
	Alloc(n int64) (*Memory, error)
	// NewStream makes a queue of launches that run one after the other.
	NewStream() (Stream, error)
}

// Properties are what the layers above must know of a device.
type Properties struct {
	// Arch names the instruction set a module must be built for; "go" on the
	// host platform, whose kernels are Go functions.
	Arch string
	// LargestCopy is the most bytes that one linear copy may move. SDMA 4.4
	// counts them in 30 bits: 1 GiB.
	LargestCopy int64
	// ClockHertz is how often a second the clock counts with which kernels and
	// copy engines stamp what they do; 0 if they cannot.
	ClockHertz int64
	// HostClock says that this clock is Clock.
	HostClock bool
}

// pageSize is the alignment of allocations.
const pageSize = 4096

var platforms = map[string]func() (Platform, error){
	"host": func() (Platform, error) { return hostPlatform{}, nil },
}

// Platforms are the names that Open takes, besides "auto".
func Platforms() []string { return slices.Sorted(maps.Keys(platforms)) }

// Open returns the platform of that name. "auto" and "" take the first one
// that finds devices, and the host where none does. The error is a
// *PlatformError.
func Open(name string) (Platform, error) {
	if name == "" || name == "auto" {
		name = "host"
	}
	open, ok := platforms[name]
	if !ok {
		return nil, &PlatformError{Name: name, Known: Platforms()}
	}
	return open()
}

// PlatformError says that a platform cannot be used here.
type PlatformError struct {
	Name  string
	Known []string // the names there are, if Name is none of them
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("hip: no platform is named %q; choose auto or one of: %s", e.Name, strings.Join(e.Known, ", "))
}

// MemoryError says that a device could not hand out memory.
type MemoryError struct {
	Device string
	Bytes  int64
	Err    error
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("hip: %s cannot allocate %d bytes: %v", e.Device, e.Bytes, e.Err)
}

func (e *MemoryError) Unwrap() error { return e.Err }
