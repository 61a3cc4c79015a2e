package hip

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// Platform is one way to reach devices: "host" needs none.
type Platform interface {
	Name() string
	// Devices is how many devices there are.
	Devices() int
	// Device returns device i, 0 ≤ i < Devices().
	Device(i int) (Device, error)
	// Describe says in a line what the platform is made of: libraries and where
	// they were found, versions.
	Describe() string
}

// Device is a place with memory of its own that runs kernels.
type Device interface {
	// Name identifies the device in errors, for example "host:0".
	Name() string
	Properties() Properties
	// Alloc returns n zeroed bytes that start on a page. It fails with a
	// *MemoryError when the device has no room for them.
	Alloc(n int64) (*Memory, error)
	// AllocHost is Alloc for memory of the host that the device reaches.
	AllocHost(n int64) (*Memory, error)
	// NewStream makes a queue of launches that run one after the other.
	NewStream() (Stream, error)
	// Load loads a module: what a compiler made for the device's Arch. A module
	// that is loaded already is not loaded again. The error is a *BusyError
	// while the device works, *MemoryError, ErrNoModules, or what the driver
	// says, with its log.
	Load(image []byte) (Module, error)
	// Prove shows, within a second or two, that kernels run while every queue
	// of the device that has nothing else to do waits at a gate. probe is the
	// built-in kernel "evaluate". The error is a *ProveError.
	Prove(ctx context.Context, probe *Function) error
}

// MemoryKind is where memory of a device lies.
type MemoryKind string

// The kinds of memory. On the host platform they are the same.
const (
	DeviceMemory MemoryKind = "device" // its own
	HostMemory   MemoryKind = "host"   // the host's, pinned and mapped for the device
)

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
	// Modules says that kernels are loaded from modules. Where they are not,
	// they are Go functions.
	Modules bool
	// Memories are the kinds of memory in which a rank's heap may lie. Copies
	// between two heaps of the first kind on one device run on its compute
	// units, if there is a second kind.
	Memories []MemoryKind
}

// pageSize is the alignment of allocations.
const pageSize = 4096

var platforms = map[string]func() (Platform, error){
	"host":   func() (Platform, error) { return hostPlatform{}, nil },
	"nvidia": sync.OnceValues(openNVIDIA),
	"amd":    openAMD,
}

// automatic are the platforms that "auto" tries before the host.
var automatic = []string{"nvidia", "amd"}

// PlatformSetting is the environment variable that names the platform which
// "auto" and "" take.
const PlatformSetting = "SLUICE_PLATFORM"

// Platforms are the names that Open takes, besides "auto".
func Platforms() []string { return slices.Sorted(maps.Keys(platforms)) }

// Open returns the platform of that name. "auto" and "" take the one that
// SLUICE_PLATFORM names; if it names none, the first that finds devices, and the
// host where none does. The error is a *PlatformError, or a *LibraryError that
// says what was looked for.
func Open(name string) (Platform, error) {
	if name == "" || name == "auto" {
		name = os.Getenv(PlatformSetting)
	}
	if name == "" || name == "auto" {
		for _, n := range automatic {
			if p, err := platforms[n](); err == nil && p.Devices() > 0 {
				return p, nil
			}
		}
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
