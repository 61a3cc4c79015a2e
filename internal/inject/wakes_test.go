package inject

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestEveryWakeUpIsDeliveredAndSomeTwice(t *testing.T) {
	const wakes = 1000
	var delivered [wakes]atomic.Int32
	var order []int
	stop := Late(1, 2*time.Millisecond)
	wake := *Wakes.Load()
	done := make(chan int, 2*wakes)
	for i := range wakes {
		wake(func() {
			if delivered[i].Add(1) == 1 {
				done <- i
			}
		})
	}
	stop()
	twice, late := 0, 0
	for range wakes {
		order = append(order, <-done)
	}
	for i := range wakes {
		if delivered[i].Load() == 2 {
			twice++
		}
		if i > 0 && order[i] < order[i-1] {
			late++
		}
	}
	if twice < wakes/8 || late < wakes/8 {
		t.Errorf("of %d wake-ups %d came twice and %d out of order", wakes, twice, late)
	}
	if Wakes.Load() != nil {
		t.Error("the hook is still there")
	}
	woken := false
	wake(func() { woken = true }) // somebody found the hook before it went
	if !woken {
		t.Error("a wake-up after the end was lost")
	}
}

func TestNothingIsInjectedUnlessAsked(t *testing.T) {
	if err := Func(nil).At(Ring, 0); err != nil {
		t.Errorf("a nil Func injects %v", err)
	}
	if Wakes.Load() != nil {
		t.Error("wake-ups are disturbed")
	}
}
