package rocm

import (
	"fmt"
	"strings"
)

// API is one of the interfaces that calls go through.
type API string

// The interfaces.
const (
	HIP API = "HIP"
	HSA API = "HSA"
	KFD API = "KFD"
)

// Codes of HIP that the platform treats by themselves.
const (
	OutOfMemory = 2
	NotReady    = 600
)

// Error is a call that ROCm or its driver refused.
type Error struct {
	API    API
	Call   string // its name
	Device int
	Code   int    // hipError_t, hsa_status_t or errno
	Name   string // the code's name
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s on device %d: %s (%s %d)", e.Call, e.Device, e.Name, e.API, e.Code)
}

// Is reports whether target is the same code of the same interface, whatever
// call and device it came from.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.API == e.API && t.Code == e.Code
}

// MissingError says which library could not be used.
type MissingError struct {
	What   string   // for example "HIP"
	Looked []string // paths, and why those that are there would not do
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s was not found; looked for %s", e.What, strings.Join(e.Looked, "; "))
}
