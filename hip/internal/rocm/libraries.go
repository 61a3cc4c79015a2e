//go:build cgo

package rocm

/*
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// Libraries is ROCm as it was found. It stays open: its threads live as long as
// the process.
type Libraries struct {
	c       *C.rocm
	version int
	loaded  []string   // as the loader was asked for them
	mu      sync.Mutex // of what KFD makes
}

var (
	openMu sync.Mutex
	opened = map[Config]*Libraries{}
)

// Open opens ROCm, once for each Config. The error is a *MissingError, or an
// *Error if the libraries are there and do not start.
func Open(c Config) (*Libraries, error) {
	openMu.Lock()
	defer openMu.Unlock()
	if l := opened[c]; l != nil {
		return l, nil
	}
	l := &Libraries{c: (*C.rocm)(C.calloc(1, C.sizeof_rocm))}
	err := l.load(c)
	if err == nil {
		err = l.start()
	}
	if err != nil {
		C.free(unsafe.Pointer(l.c))
		return nil, err
	}
	opened[c] = l
	return l, nil
}

func (l *Libraries) load(c Config) error {
	if err := l.find("HIP's library libamdhip64", c.paths(hipNames), func(path *C.char) *C.char { return C.rocm_load_hip(l.c, path) }); err != nil {
		return err
	}
	if err := l.find("the HSA runtime's library libhsa-runtime64", c.paths(hsaNames), func(path *C.char) *C.char { return C.rocm_load_hsa(l.c, path) }); err != nil {
		return err
	}
	return l.find("the library that stands in for KFD", []string{c.KFD}, func(path *C.char) *C.char { return C.rocm_load_kfd(l.c, path) })
}

// find loads the first of paths that will do. Only the reasons of those that are
// there are worth telling.
func (l *Libraries) find(what string, paths []string, load func(*C.char) *C.char) error {
	var looked []string
	for _, p := range paths {
		path := C.CString(p)
		why := load(path)
		C.free(unsafe.Pointer(path))
		if why == nil {
			if p != "" {
				l.loaded = append(l.loaded, p)
			}
			return nil
		}
		if text := C.GoString(why); strings.HasSuffix(text, "No such file or directory") {
			looked = append(looked, p)
		} else {
			looked = append(looked, fmt.Sprintf("%s (%s)", p, text))
		}
	}
	return &MissingError{What: what, Looked: looked}
}

func (l *Libraries) start() error {
	if err := l.hip("hipInit", 0, C.rocm_init(l.c)); err != nil {
		return err
	}
	var v C.int
	if err := l.hip("hipRuntimeGetVersion", 0, C.rocm_version(l.c, &v)); err != nil {
		return err
	}
	l.version = int(v)
	return nil
}

// Devices is how many devices HIP has. The error is an *Error.
func (l *Libraries) Devices() (int, error) {
	var n C.int
	err := l.hip("hipGetDeviceCount", 0, C.rocm_count(l.c, &n))
	return int(n), err
}

// Version is HIP's version: 10,000,000 times the major and 100,000 times the
// minor number, and the patch.
func (l *Libraries) Version() int { return l.version }

// Loaded is the libraries that were opened, as the loader was asked for them: a
// name without a folder is one that it found on its path.
func (l *Libraries) Loaded() []string { return l.loaded }

// hip makes a hipError_t an error.
func (l *Libraries) hip(call string, device int, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{API: HIP, Call: call, Device: device, Code: int(code), Name: C.GoString(C.rocm_hip_name(l.c, code))}
}

// hsa makes a status of HSA an error.
func (l *Libraries) hsa(call string, device int, status C.uint32_t) error {
	if status == 0 {
		return nil
	}
	return &Error{API: HSA, Call: call, Device: device, Code: int(status), Name: C.GoString(C.rocm_hsa_name(l.c, status))}
}

// kfd makes an errno an error.
func kfd(call string, device int, errno int) error {
	if errno == 0 {
		return nil
	}
	return &Error{API: KFD, Call: call, Device: device, Code: errno, Name: syscall.Errno(errno).Error()}
}
