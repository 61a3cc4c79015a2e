package rank

import (
	"context"
	"testing"

	"github.com/triggeredplans/sluice/hip"
)

// endingStream is a stream whose last launch ends just before it is watched.
type endingStream struct {
	hip.Stream
	ended bool
}

func (s *endingStream) Idle() bool        { return s.ended }
func (s *endingStream) Watch(*hip.Waiter) { s.ended = true }

func TestALaunchThatEndsBeforeItIsWatchedIsNotMissed(t *testing.T) {
	r := &Rank{streams: []*Stream{{hip: new(endingStream)}}}
	w := hip.NewWaiter()
	if !r.WatchLaunches(w) {
		t.Fatal("there was a launch to watch")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Park(ended); err != nil {
		t.Error("the waiter would have slept for ever")
	}
}
