package main

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSoak is a soak on the host platform, whose engines and kernels it can have
// fail.
func newSoak(out *bytes.Buffer, bouts uint64) *soak {
	return &soak{out: out, budget: time.Hour, seed: 1, workers: 2, limit: bouts, platform: "host"}
}

func TestASoakEndsCleanAndSaysWhatItDid(t *testing.T) {
	var out bytes.Buffer
	s := newSoak(&out, 6)
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if s.tally.worlds.Load() < 6 || s.tally.rounds.Load() == 0 || s.tally.bytes.Load() == 0 || s.tally.survived() == 0 {
		t.Errorf("it did nothing: %v", &s.tally)
	}
	for _, want := range []string{`^seed 1, `, `\d+ worlds, \d+ plans, \d+ rounds, `, `faults survived`, `at the start: \d+ goroutines`, `at the end: `} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the report does not match %q:\n%s", want, &out)
		}
	}
}

// TestASoakFindsWhatIsWrong has engines do something else than they are told.
func TestASoakFindsWhatIsWrong(t *testing.T) {
	for name, sabotage := range map[string]packetHook{
		"copies from the wrong place": func(_, _ int, p *sdma.Packet) error {
			if p.Op == sdma.OpCopyLinear && p.Copy.Width > 1 {
				p.Copy.Width--
				p.Copy.Src++
			}
			return nil
		},
		"copies too little": func(_, _ int, p *sdma.Packet) error {
			if p.Op == sdma.OpCopyLinear && p.Copy.Width > 1 {
				p.Copy.Width--
			}
			return nil
		},
		"faults": func(_, _ int, p *sdma.Packet) error {
			if p.Op == sdma.OpCopyWindow {
				return errors.New("by itself")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := newSoak(&out, 20)
			s.sabotage = sabotage
			err := s.run()
			if err == nil {
				t.Fatal("it has found nothing")
			}
			if name != "faults" && !errors.Is(err, errWrong) {
				t.Errorf("it says %v", err)
			}
			if !strings.Contains(err.Error(), "run it again with -seed 1 -from ") {
				t.Errorf("it does not say how to run the bout again: %v", err)
			}
		})
	}
}

func TestMemoryThatGrowsIsNotLevel(t *testing.T) {
	was := usage{heap: 1 << 20, resident: 10 << 20}
	for _, now := range []usage{{heap: was.heap + heapSlack + 1, resident: was.resident}, {heap: was.heap, resident: was.resident + residentSlack + 1}} {
		if now.level(was) == nil {
			t.Errorf("%v is level with %v", now, was)
		}
	}
	if err := was.level(was); err != nil {
		t.Error(err)
	}
}
