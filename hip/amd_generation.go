package hip

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// generation is what differs between AMD's copy engines. Adding one is adding
// a row.
type generation struct {
	packets string // the packet set
	// largest is the most bytes that one copy may move, linear or window.
	largest int64
	// window is the most that a window's pitch, width and height can be.
	window int64
}

// SDMA 4.4 counts a linear copy in 30 bits and a window in fields of 32. The
// engines of gfx950 have stalled on single copies of 256 MiB and more.
var generations = map[string]generation{
	"gfx90a": {packets: "SDMA 4.4.0", largest: 1 << 30, window: 1 << 32},
	"gfx942": {packets: "SDMA 4.4.2", largest: 1 << 30, window: 1 << 32},
	"gfx950": {packets: "SDMA 4.4.5", largest: 128 << 20, window: 1 << 32},
}

// GenerationError says that a device's copy engines are none that Sluice knows.
type GenerationError struct {
	Device, Arch string
	Known        []string
}

func (e *GenerationError) Error() string {
	return fmt.Sprintf("hip: %s is a %s, whose copy engines Sluice does not know; it knows those of %s", e.Device, e.Arch, strings.Join(e.Known, ", "))
}

func generationOf(device, arch string) (generation, error) {
	g, ok := generations[arch]
	if !ok {
		return g, &GenerationError{Device: device, Arch: arch, Known: slices.Sorted(maps.Keys(generations))}
	}
	return g, nil
}
