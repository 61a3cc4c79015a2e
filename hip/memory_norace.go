//go:build !race

package hip

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hugeBytes is the size from which memory is mapped in huge pages, where the
// system has them: it becomes resident 2 MiB at a time, for a fraction of what
// as many small pages cost. A ring is smaller, since there are many and few are
// written to their end.
const hugeBytes = 16 << 20

// mapBytes maps n zeroed bytes, whole pages outside the Go heap: the collector
// never walks them, and their address never changes.
func mapBytes(n int64) ([]byte, func(), error) {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("hip: mapping %d bytes of host memory: %w", n, err)
	}
	if n >= hugeBytes {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // where it fails, pages are small
	}
	return b, func() { unix.Munmap(b) }, nil
}
