package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// soak is a run of many bouts.
type soak struct {
	out      io.Writer
	budget   time.Duration
	seed     uint64
	workers  int
	from     uint64
	limit    uint64
	platform string
	sabotage packetHook // of every bout, for tests of the soak
	tally    tally
}

// sees says whether the platform is the host's, whose engines let their packets
// be seen and whose kernels are Go functions.
func (s *soak) sees() bool { return s.platform == "" || s.platform == "host" }

// boutsPerEpoch is how many bouts each worker runs between two looks at what is
// left over.
const boutsPerEpoch = 10

// warmEpochs are for pools, caches and stacks to come to their size; memory is
// compared with what it was then.
const warmEpochs = 2

// run goes on until the time is over or a bout fails.
func (s *soak) run() error {
	fmt.Fprintf(s.out, "seed %d, %v, %d bouts at a time\n", s.seed, s.budget, s.workers)
	cold, err := measure()
	if err != nil {
		return err
	}
	warm := cold
	began := time.Now()
	next, said := s.from, began
	for epoch := 0; time.Since(began) < s.budget && (s.limit == 0 || next < s.from+s.limit); epoch++ {
		if next, err = s.epoch(next); err != nil {
			return err
		}
		now, err := settled(cold.goroutines)
		if err != nil {
			return fmt.Errorf("after bout %d: %w", next-1, err)
		}
		if epoch < warmEpochs {
			warm = now
		}
		if time.Since(said) >= time.Minute {
			said = time.Now()
			fmt.Fprintf(s.out, "%v: %v; %v\n", time.Since(began).Round(time.Second), &s.tally, now)
		}
	}
	end, err := settled(cold.goroutines)
	if err != nil {
		return err
	}
	s.tally.report(s.out, time.Since(began))
	fmt.Fprintf(s.out, "at the start: %v\nwarmed up:    %v\nat the end:   %v\n", cold, warm, end)
	return end.level(warm)
}

// grace is what a bout has to end in when its patience is over.
const grace = 30 * time.Second

// guard runs a bout and says where it hangs if it does not end.
func guard(run func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- run() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience + grace):
		return fmt.Errorf("it hangs:\n%s", stacks())
	}
}

// epoch runs the bouts from first on, and returns the number of the next.
func (s *soak) epoch(first uint64) (uint64, error) {
	n := uint64(s.workers * boutsPerEpoch)
	if s.limit > 0 {
		n = min(n, s.from+s.limit-first)
	}
	errs := make([]error, s.workers)
	var group sync.WaitGroup
	for w := range s.workers {
		group.Go(func() {
			for i := first + uint64(w); i < first+n && errs[w] == nil; i += uint64(s.workers) {
				if err := guard(newBout(s, i).run); err != nil {
					errs[w] = fmt.Errorf("bout %d: %w\nrun it again with -seed %d -from %d -bouts 1", i, err, s.seed, i)
				}
			}
		})
	}
	group.Wait()
	return first + n, errors.Join(errs...)
}
