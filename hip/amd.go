//go:build cgo && linux

package hip

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/triggeredplans/sluice/hip/internal/kfd"
	"github.com/triggeredplans/sluice/hip/internal/rocm"
)

// amdPlatform is ROCm and its devices.
type amdPlatform struct {
	libraries *rocm.Libraries
	from      string // where the libraries and the topology came from
	sysfs     string
	topology  func() (kfd.Topology, error) // what the driver tells of the machine
	devices   []*amdDevice
}

// amdKey is what makes one platform another.
type amdKey struct {
	config  rocm.Config
	sysfs   string
	devices int
}

var amdOpened = struct {
	mu      sync.Mutex
	all     map[amdKey]*amdPlatform
	missing map[rocm.Config]error // what was looked for in vain
}{all: map[amdKey]*amdPlatform{}, missing: map[rocm.Config]error{}}

// openAMD opens ROCm's libraries. What they are is fixed by the environment, so
// a platform is opened once for each.
func openAMD() (Platform, error) {
	key := amdKey{config: rocm.Config{Dir: os.Getenv(ROCmSetting), KFD: os.Getenv(KFDSetting)}, sysfs: sysfs()}
	amdOpened.mu.Lock()
	defer amdOpened.mu.Unlock()
	if err := amdOpened.missing[key.config]; err != nil {
		return nil, err
	}
	l, err := rocm.Open(key.config)
	if missing := (*rocm.MissingError)(nil); errors.As(err, &missing) {
		err := &LibraryError{Platform: "amd", Library: missing.What, Setting: ROCmSetting + " (its folder)", Why: "tried " + strings.Join(missing.Looked, ", ")}
		amdOpened.missing[key.config] = err
		return nil, err
	}
	if err == nil {
		key.devices, err = l.Devices()
	}
	if err != nil {
		return nil, fmt.Errorf("hip: platform amd: ROCm does not start: %w", err)
	}
	if amdOpened.all[key] == nil {
		amdOpened.all[key] = newAMDPlatform(key, l)
	}
	return amdOpened.all[key], nil
}

func newAMDPlatform(key amdKey, l *rocm.Libraries) *amdPlatform {
	p := &amdPlatform{libraries: l, from: "the loader's path", sysfs: key.sysfs}
	if key.config.Dir != "" {
		p.from = key.config.Dir
	}
	p.topology = sync.OnceValues(func() (kfd.Topology, error) { return kfd.Read(key.sysfs) })
	for i := range key.devices {
		p.devices = append(p.devices, &amdDevice{platform: p, rocm: l, index: i})
	}
	return p
}

func (p *amdPlatform) Name() string { return "amd" }

func (p *amdPlatform) Devices() int { return len(p.devices) }

func (p *amdPlatform) Device(i int) (Device, error) {
	if i < 0 || i >= len(p.devices) {
		return nil, fmt.Errorf("hip: the amd platform has no device %d; it has %d, counted from 0", i, len(p.devices))
	}
	d := p.devices[i]
	d.opening.Do(func() { d.openErr = d.open() })
	if d.openErr != nil {
		return nil, d.openErr
	}
	return d, nil
}

func (p *amdPlatform) Describe() string {
	v := p.libraries.Version()
	return fmt.Sprintf("amd: ROCm from %s (%s), HIP %d.%d, %d devices, topology from %s", p.from, strings.Join(p.libraries.Loaded(), ", "), v/10_000_000, v/100_000%100, len(p.devices), p.sysfs)
}
