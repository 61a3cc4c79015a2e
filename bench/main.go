// Command bench measures the host platform. Every figure is a ratio of things
// that took turns in one run on one machine, or says why it is not; the median
// of several turns counts, and the spread is shown with it.
//
//	go run ./bench                         a table, in a few minutes
//	go run ./bench -scope full -json       every case, one object a line
//	go run ./bench -list                   what is measured
//	go run ./bench -run 'rounds|trigger'   some of it
//	go run ./bench -run rounds -cpuprofile cpu.prof
//	go run ./bench -benchstat old.json     a file's samples as benchstat reads them
//	go run ./bench -plot x.svg new.json    the growth figures of a file as a picture
//
// The status is 0 when everything was measured, 1 when something failed or,
// with -check, when a limit is missed, and 2 when a flag is wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are what the flags say.
type options struct {
	json, list, check bool
	only              *regexp.Regexp
	scope             scope
	repeats           int
	allgather         string // the program that measures OpenMPI, or ""
	benchstat, plot   string // files
	profile           string // file
	rest              []string
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.json, "json", false, "print one object per line")
	flags.BoolVar(&o.list, "list", false, "say what is measured, and measure nothing")
	flags.BoolVar(&o.check, "check", false, "fail when a limit is missed")
	only := flags.String("run", "", "measure the figures whose names match this regular expression")
	size := flags.String("scope", "usual", "how much to measure: "+strings.Join(scopes, ", "))
	flags.IntVar(&o.repeats, "repeats", 0, "turns of each measurement; 0 is as many as the scope says")
	flags.StringVar(&o.allgather, "allgather", "", "the program built from bench/mpi/allgather.c; without it OpenMPI is left out")
	flags.StringVar(&o.benchstat, "benchstat", "", "print the samples of a file that -json wrote as benchstat reads them")
	flags.StringVar(&o.plot, "plot", "", "draw the growth figures of the file that -json wrote, which is the argument, into this file")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a profile for pprof to this file")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.rest = flags.Args()
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if o.scope, err = parseScope(*size); err != nil {
		return o, err
	}
	if want := map[bool]int{true: 1}[o.plot != ""]; len(o.rest) != want {
		return o, fmt.Errorf("%d arguments; %d expected", len(o.rest), want)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch err {
	case nil:
	case flag.ErrHelp:
		return 0
	default:
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	missed := 0
	switch {
	case o.list:
		for _, f := range figures {
			fmt.Fprintf(stdout, "%-12s %s\n", f.name, f.about)
		}
	case o.benchstat != "":
		err = toBenchstat(stdout, o.benchstat)
	case o.plot != "":
		err = drawGrowth(o.plot, o.rest[0])
	default:
		missed, err = measure(ctx, o, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	if o.check && missed > 0 {
		fmt.Fprintf(stderr, "bench: %d limits are missed\n", missed)
		return 1
	}
	return 0
}

// measure runs the figures that are asked for, prints their results as they
// come, and counts the limits that are missed.
func measure(ctx context.Context, o options, stdout, stderr io.Writer) (missed int, err error) {
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return 0, err
		}
		defer pprof.StopCPUProfile()
	}
	print := newTable(stdout).print
	if o.json {
		print = newLines(stdout).print
	}
	s := &suite{ctx: ctx, options: o, notes: stderr, emit: func(r result) error {
		if r.missed() {
			missed++
		}
		return print(r)
	}}
	found := false
	for _, f := range figures {
		if !o.only.MatchString(f.name) {
			continue
		}
		found = true
		s.figure = f.name
		if err := f.measure(s); err != nil {
			return missed, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if !found {
		return 0, fmt.Errorf("no figure's name matches %v; -list names them", o.only)
	}
	return missed, nil
}
