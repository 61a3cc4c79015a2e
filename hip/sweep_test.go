package hip

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// A device writes words without telling anybody; the test does it with a plain
// atomic store.
func TestAWaiterIsWokenByAWriteThatNobodyToldOf(t *testing.T) {
	words := make([]uint64, 64)
	bytes := wordBytes(words)
	sweep.cover(bytes)
	defer sweep.uncover(bytes)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for round := uint64(1); round <= 200; round++ {
		i := round % 64
		w := (*Word)(unsafe.Pointer(&words[i]))
		parked := make(chan error, 2)
		for range 2 {
			go func() {
				parked <- NewWaiter().Await(ctx, w, func(v uint64) bool { return v == round }, nil)
			}()
		}
		atomic.StoreUint64(&words[i], round)
		for range 2 {
			if err := <-parked; err != nil {
				t.Fatal(err)
			}
		}
	}
	until := time.Now().Add(10 * time.Second)
	for {
		sweep.mu.Lock()
		sweeping, left := sweep.sweeping, len(sweep.words)
		sweep.mu.Unlock()
		if left > 0 {
			t.Fatalf("%d words are still watched", left)
		}
		if !sweeping {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the sweeper goes on though nothing is watched")
		}
	}
}

// Words outside of what devices write are not looked at.
func TestOnlyWordsThatDevicesWriteAreSwept(t *testing.T) {
	w := NewWaiter()
	w.Watch(new(Word))
	defer w.Unwatch()
	sweep.mu.Lock()
	defer sweep.mu.Unlock()
	if len(sweep.words) > 0 {
		t.Errorf("%d words are swept", len(sweep.words))
	}
}
