package hip

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNoModules says that a platform's kernels are not loaded from modules: on
// the host they are Go functions.
var ErrNoModules = errors.New("hip: kernels on the host are Go functions; there is no module to load")

// LibraryError says that a platform's library cannot be used.
type LibraryError struct {
	Platform, Library string
	Setting           string // the environment variable that names another
	Why               string
}

func (e *LibraryError) Error() string {
	return fmt.Sprintf("hip: platform %s looked for %s, which cannot be used: %s; install the driver, or name its library in %s", e.Platform, e.Library, e.Why, e.Setting)
}

// BusyError says that something cannot be done while a device works, since the
// driver would wait for that work, and the work may wait for the caller.
type BusyError struct {
	Op, Device string
	By         []string // queues and kernels that have not ended
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("hip: %s on %s is refused while the devices work: %s; do it before plans are made, or after they are closed", e.Op, e.Device, strings.Join(e.By, ", "))
}

// StreamLimitError says that a device has no stream left. Each takes one of the
// connections that the driver was started with, and streams that share one
// would wait for each other.
type StreamLimitError struct {
	Device      string
	For         string // what the stream was wanted for
	Limit       int    // streams that may be in use
	Connections int
	Setting     string // the environment variable that sets them
}

func (e *StreamLimitError) Error() string {
	return fmt.Sprintf("hip: %s has no stream left for %s: all of its %d are in use, of the %d connections that %s gives it; use fewer ranks or streams on the device", e.Device, e.For, e.Limit, e.Connections, e.Setting)
}

// ProveError says that a device cannot run kernels while copies wait.
type ProveError struct {
	Device string
	What   string // what did not happen
	After  time.Duration
	Queues int // that waited
}

func (e *ProveError) Error() string {
	return fmt.Sprintf("hip: %s: %s within %v while %d queues waited at a gate; another part of the process may have started the driver with fewer connections, or uses streams of its own: open the world first, or use fewer ranks", e.Device, e.What, e.After, e.Queues)
}

// LaunchError says that a launch was refused.
type LaunchError struct {
	Device, Kernel, Why string
}

func (e *LaunchError) Error() string {
	return fmt.Sprintf("hip: launch of %s on %s: %s", e.Kernel, e.Device, e.Why)
}

// RoomError says that kernels which wait for arrivals would leave a device too
// little room for the kernels that produce them.
type RoomError struct {
	Device, Kernel string
	Want           int // CTAs
	Fit            int // CTAs of the kernel that the device runs at once
	Held           int // percent of the device that waiting kernels hold
	Limit          int // percent that they may hold together
	Holders        []string
}

func (e *RoomError) Error() string {
	s := fmt.Sprintf("hip: launch of %s on %s: it waits for arrivals, and %d of its CTAs, of the %d that the device runs at once, would leave too little room for producers: kernels that wait may hold %d%% of the device together and hold %d%%",
		e.Kernel, e.Device, e.Want, e.Fit, e.Limit, e.Held)
	if len(e.Holders) > 0 {
		s += " (" + strings.Join(e.Holders, ", ") + ")"
	}
	return s + "; launch it with fewer CTAs"
}

// StuckError says that a kernel or a queue does not end.
type StuckError struct {
	Device, What string
	Err          error // why nobody waits any more
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("hip: %s on %s does not end: %v", e.What, e.Device, e.Err)
}

func (e *StuckError) Unwrap() error { return e.Err }

// ModuleError says that a device could not load a module.
type ModuleError struct {
	Device, Arch string
	Log          string // of the driver's compiler
	Err          error
}

func (e *ModuleError) Error() string {
	s := fmt.Sprintf("hip: %s (%s) cannot load the module: %v", e.Device, e.Arch, e.Err)
	if log := strings.TrimSpace(e.Log); log != "" {
		s += "; its compiler says: " + log
	}
	return s
}

func (e *ModuleError) Unwrap() error { return e.Err }
