package rank

import (
	"fmt"
	"slices"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
)

// Placement says where a rank lives.
type Placement struct {
	Device int // of the platform, counted from 0
	// Memory is where the rank's heap lies; "" leaves it to the platform. Its
	// kernels run on the device either way.
	Memory hip.MemoryKind
}

// ComputeError says that copies between two ranks would run on the compute
// units that they share, and wait for the kernels there.
type ComputeError struct {
	Rank, Peer int
	Device     string
}

func (e *ComputeError) Error() string {
	return fmt.Sprintf("rank: the heaps of rank %d and rank %d both lie in the memory of %s, whose copies within itself run on its compute units and wait for kernels there; place one of them in host memory (Config.Placement), or allow it with Config.AllowComputeCopies",
		e.Rank, e.Peer, e.Device)
}

// placements are where the world's ranks live: as configured, or in turn on the
// devices. The first rank on a device has its heap in the device's memory, so
// that between it and the others there a copy engine works.
func (w *World) placements() ([]Placement, error) {
	places := slices.Clone(w.cfg.Placement)
	devices := w.platform.Devices()
	switch {
	case devices == 0:
		return nil, &ConfigError{"Platform", w.platform.Name(), "the platform finds no device here"}
	case places == nil:
		for i := range w.cfg.Ranks {
			places = append(places, Placement{Device: i % devices})
		}
	case len(places) != w.cfg.Ranks:
		return nil, &ConfigError{"Placement", fmt.Sprintf("of length %d", len(places)), fmt.Sprintf("it has one entry for each of the %d ranks, or is nil", w.cfg.Ranks)}
	}
	lived := map[int]bool{} // devices with a rank
	for i := range places {
		p := &places[i]
		if p.Device < 0 || p.Device >= devices {
			return nil, &ConfigError{fmt.Sprintf("Placement[%d].Device", i), p.Device, fmt.Sprintf("platform %s has the devices 0 to %d", w.platform.Name(), devices-1)}
		}
		dev, err := w.platform.Device(p.Device)
		if err != nil {
			return nil, err
		}
		kinds := dev.Properties().Memories
		switch {
		case p.Memory == "" && lived[p.Device]:
			p.Memory = kinds[len(kinds)-1]
		case p.Memory == "":
			p.Memory = kinds[0]
		case !slices.Contains(kinds, p.Memory):
			return nil, &ConfigError{fmt.Sprintf("Placement[%d].Memory", i), fmt.Sprintf("%q", p.Memory), fmt.Sprintf("%s has %q", dev.Name(), kinds)}
		}
		lived[p.Device] = true
	}
	return places, nil
}

// endpoints are the ranks' places as queues know them.
func (w *World) endpoints(places []Placement) ([]copyengine.Endpoint, error) {
	taken := map[Placement]int{}
	ends := make([]copyengine.Endpoint, len(places))
	for i, p := range places {
		ends[i] = copyengine.Endpoint{Platform: w.platform.Name(), Device: p.Device, Slot: taken[p]}
		taken[p]++
		dev, err := w.platform.Device(p.Device)
		if err != nil {
			return nil, err
		}
		if len(dev.Properties().Memories) > 1 {
			ends[i].Memory = string(p.Memory)
		}
		for j := range i {
			if !w.cfg.AllowComputeCopies && copyengine.OnComputeUnits(ends[j], ends[i]) {
				return nil, &ComputeError{Rank: j, Peer: i, Device: dev.Name()}
			}
		}
	}
	return ends, nil
}
