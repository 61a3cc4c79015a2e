//go:build cgo && linux

package fakerocm

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef struct {
    long holds[6];
    unsigned long does[2];
} counts;

static void *find(const char *path, const char *name) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

static int tell(void *f, const char *text) { return ((int (*)(const char *))f)(text); }
static void read_counts(void *f, counts *to) { ((void (*)(counts *))f)(to); }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// ErrNoCgo says that the program was built without cgo, by which the library is
// reached.
var ErrNoCgo = errors.New("fakerocm: the program was built without cgo")

// find looks a function up in the library that this process uses.
func find(name string) (unsafe.Pointer, error) {
	library, n := C.CString(os.Getenv("SLUICE_KFD")), C.CString(name)
	defer C.free(unsafe.Pointer(library))
	defer C.free(unsafe.Pointer(n))
	f := C.find(library, n)
	if f == nil {
		return nil, fmt.Errorf("fakerocm: %q is no emulated ROCm; call Use first", os.Getenv("SLUICE_KFD"))
	}
	return f, nil
}

// Tell sets how the library behaves from now on: the defaults, changed by words
// of the form key=value.
//
//	devices=N           how many there are
//	arch=NAME           what they are: gfx90a, gfx942, gfx950
//	kfd_minor=N         KFD's interface is 1.N
//	no_hsa=1            the HSA runtime refuses to make SDMA queues
//	memory=N            bytes that each device has
//	dead=D:E            engine E of device D (* is any) takes doorbells and does nothing
//	slow=D:E:N          it takes N microseconds for each packet
//	stall=D:E:N         it stops after N packets of a queue, and says nothing
//	error=D:E:N         it stops after N packets of a queue, and the runtime says so
//	refuse=D:N          device D makes N queues and no more
//	no_access=D:P       device D cannot reach the memory of device P
//	log=PATH            each packet that was executed is written to a file
func Tell(text string) error {
	f, err := find("fakerocm_tell")
	if err != nil {
		return err
	}
	t := C.CString(text)
	defer C.free(unsafe.Pointer(t))
	if C.tell(f, t) != 0 {
		return fmt.Errorf("fakerocm: %q is not understood", text)
	}
	return nil
}

// Now is what the library holds and has done.
func Now() (Counts, error) {
	f, err := find("fakerocm_counts")
	if err != nil {
		return Counts{}, err
	}
	var c C.counts
	C.read_counts(f, &c)
	return Counts{
		Allocations: int64(c.holds[0]), Queues: int64(c.holds[1]), Streams: int64(c.holds[2]),
		Events: int64(c.holds[3]), Modules: int64(c.holds[4]), Files: int64(c.holds[5]),
		Packets: uint64(c.does[0]), Kernels: uint64(c.does[1]),
	}, nil
}
