//go:build !race

package hip

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapBytes maps n zeroed bytes, whole pages outside the Go heap: the collector
// never walks them, and their address never changes.
func mapBytes(n int64) ([]byte, func(), error) {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("hip: mapping %d bytes of host memory: %w", n, err)
	}
	return b, func() { unix.Munmap(b) }, nil
}
