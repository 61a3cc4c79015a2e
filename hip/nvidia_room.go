//go:build cgo && linux

package hip

import "fmt"

// Kernels that wait for arrivals keep what they run on until those come, and
// the kernels that produce them need a place too.

// waitingLimit is how much of a device, in percent, kernels that wait may hold
// together.
const waitingLimit = 50

// hold is what a stream's waiting kernels hold of their device.
type hold struct {
	kernels int
	share   float64 // of the device: the largest of them, since they run one after the other
	names   []string
}

// hold books a launch that waits, and returns what ends the booking. It is
// called under the stream's lock.
func (s *nvidiaStream) hold(f *nvidiaFunction, l Launch) (release func(), err error) {
	fit, err := f.fits(l.Grid.Threads)
	if err != nil {
		return nil, err
	}
	d := s.device
	d.mu.Lock()
	defer d.mu.Unlock()
	held := 0.0
	var names []string
	for o, h := range d.waiting {
		if o != s {
			held += h.share
			names = append(names, h.names...)
		}
	}
	share := 1.0
	if fit > 0 {
		share = float64(l.Grid.Blocks) / float64(fit)
	}
	h := d.waiting[s]
	if held+max(share, h.share) > waitingLimit/100. {
		return nil, &RoomError{Device: d.Name(), Kernel: l.Func.Name, Want: l.Grid.Blocks, Fit: fit, Held: int(held * 100), Limit: waitingLimit, Holders: names}
	}
	h.kernels++
	h.share = max(share, h.share)
	h.names = append(h.names, fmt.Sprintf("%s: %d CTAs", l.Func.Name, l.Grid.Blocks))
	d.waiting[s] = h
	return func() { d.releaseHold(s) }, nil
}

// releaseHold ends the stream's oldest booking.
func (d *nvidiaDevice) releaseHold(s *nvidiaStream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.waiting[s]
	if h.kernels--; h.kernels <= 0 {
		delete(d.waiting, s)
		return
	}
	h.names = h.names[1:]
	d.waiting[s] = h
}
