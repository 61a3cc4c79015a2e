//go:build cgo && linux

package hip

import "time"

// While streams have work, one goroutine asks the driver now and then whether
// they are sound: what has failed writes no word that would tell.

const (
	guardEvery = 10 * time.Millisecond
	guardIdle  = 10 // rounds without work after which it ends
)

// guard starts the goroutine if there is none.
func (d *nvidiaDevice) guard() {
	if d.guarded.CompareAndSwap(false, true) {
		go d.keepGuard()
	}
}

func (d *nvidiaDevice) keepGuard() {
	ticks := time.NewTicker(guardEvery)
	defer ticks.Stop()
	lost := false
	for idle := 0; idle < guardIdle && !lost; {
		<-ticks.C
		idle++
		lost = d.sound() != nil // and then everybody hears of it in this round
		if d.examine() {
			idle = 0
		}
	}
	d.guarded.Store(false)
	if !lost && len(d.busy()) > 0 { // what began between the last look and now
		d.guard()
	}
}

// examine asks about all streams that have work, and reports whether there are
// any.
func (d *nvidiaDevice) examine() (any bool) {
	for _, w := range d.workers() {
		if w.busy() != "" {
			any = true
			w.examine()
		}
	}
	return any
}
