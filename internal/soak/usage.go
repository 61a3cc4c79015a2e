package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// usage is what the process holds while no bout runs.
type usage struct {
	goroutines int
	heap       uint64 // bytes of live Go objects
	resident   uint64 // bytes of memory that the system counts
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MiB live, %.1f MiB resident", u.goroutines, mib(u.heap), mib(u.resident))
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

func measure() (usage, error) {
	debug.FreeOSMemory() // collects first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usage{}, err
	}
	var pages uint64
	if f := strings.Fields(string(text)); len(f) > 1 {
		pages, err = strconv.ParseUint(f[1], 10, 64)
	}
	return usage{runtime.NumGoroutine(), m.HeapAlloc, pages * uint64(os.Getpagesize())}, err
}

// settle is how long goroutines that have nothing left to do may take to end.
const settle = 10 * time.Second

// settled is the usage once no more goroutines than at the start are left. The
// error has the stacks of those that do not end.
func settled(goroutines int) (usage, error) {
	for began := time.Now(); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Since(began) > settle {
			return usage{}, fmt.Errorf("%d goroutines are left, %d were there at the start:\n%s", runtime.NumGoroutine(), goroutines, stacks())
		}
	}
	return measure()
}

// stacks are those of every goroutine.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// What memory may grow by between two moments at which nothing runs: the
// runtime's own tables, and pages that it keeps.
const (
	heapSlack     = 4 << 20
	residentSlack = 32 << 20
)

// level says that u is no more than before.
func (u usage) level(before usage) error {
	if u.heap > before.heap+heapSlack || u.resident > before.resident+residentSlack {
		return fmt.Errorf("memory has grown: %v, before that %v", u, before)
	}
	return nil
}
