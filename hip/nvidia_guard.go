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
	for idle := 0; idle < guardIdle; {
		<-ticks.C
		idle++
		for _, w := range d.workers() {
			if w.busy() != "" {
				idle = 0
				w.examine()
			}
		}
	}
	d.guarded.Store(false)
	for _, w := range d.workers() { // that began between the last look and now
		if w.busy() != "" {
			d.guard()
			return
		}
	}
}
