package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	s := &soak{out: os.Stdout}
	flag.DurationVar(&s.budget, "for", 10*time.Minute, "how long to go on")
	flag.Uint64Var(&s.seed, "seed", 0, "where the bouts begin; 0 takes the time")
	flag.IntVar(&s.workers, "workers", 4, "bouts at a time")
	flag.Uint64Var(&s.from, "from", 0, "the first bout")
	flag.Uint64Var(&s.limit, "bouts", 0, "end after so many; 0 means when the time is over")
	flag.StringVar(&s.platform, "platform", os.Getenv("SLUICE_PLATFORM"), "where worlds run")
	flag.Parse()
	if flag.NArg() > 0 || s.workers < 1 || s.budget <= 0 {
		fmt.Fprintln(os.Stderr, "soak: it takes no arguments, at least one worker and a positive time")
		os.Exit(2)
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	if err := s.run(); err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		os.Exit(1)
	}
}
