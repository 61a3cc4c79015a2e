package example

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/metrics"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/timeline/picture"
)

// Flags are the flags that every example takes.
type Flags struct {
	Ranks    int
	Rounds   int
	Platform string
	Heap     int64
	JSON     bool
	Verbose  bool
	Metrics  string        // address to serve metrics and the page on
	Linger   time.Duration // to go on serving them
	Trace    string        // file for the timeline
	Plot     string        // file for its picture

	out, err io.Writer
	terminal bool      // err is one
	last     time.Time // of the last progress line
}

// Main runs an example and ends the process: with status 0 if run succeeded, 1
// if it failed and 2 if the flags were wrong. run returns what -json prints
// and a table prints otherwise; with an error too, if there is something to
// show. The error is the last line on standard error.
func Main(name, what string, add func(*flag.FlagSet), run func(context.Context, *Flags) (Result, error)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, name, what, os.Args[1:], os.Stdout, os.Stderr, add, run)
	stop()
	os.Exit(code)
}

// Result is what an example found.
type Result interface {
	// Verified is whether every byte was right.
	Verified() bool
	// Table is the result for people: a row per figure.
	Table() [][2]string
}

// Run is Main without the process.
func Run(ctx context.Context, name, what string, args []string, stdout, stderr io.Writer, add func(*flag.FlagSet), run func(context.Context, *Flags) (Result, error)) int {
	f := &Flags{out: stdout, err: stderr}
	if file, ok := stderr.(*os.File); ok {
		info, err := file.Stat()
		f.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	Count(fs, &f.Ranks, "ranks", 4, 1, rank.MaxRanks, "number of ranks")
	fs.StringVar(&f.Platform, "platform", "auto", "where to run: auto, "+strings.Join(hip.Platforms(), ", "))
	fs.Int64Var(&f.Heap, "heap", 0, "bytes of each rank's heap; 0 means as many as are needed")
	fs.BoolVar(&f.JSON, "json", false, "print one JSON object on standard output, and nothing else there")
	fs.BoolVar(&f.Verbose, "v", false, "say more on standard error")
	fs.StringVar(&f.Metrics, "metrics", "", "serve /metrics and "+metrics.Path+" on this `address`, for example 127.0.0.1:9400")
	fs.DurationVar(&f.Linger, "linger", 0, "with -metrics, go on serving for so long after the last round")
	fs.StringVar(&f.Trace, "trace", "", "write the timeline of all rounds to this `file`, for Perfetto")
	add(fs)
	if fs.Lookup("steps") == nil { // some programs count something else,
		Count(fs, &f.Rounds, "rounds", 10, 1, math.MaxUint32, "number of rounds")
	}
	if fs.Lookup("plot") == nil { // or draw something else
		fs.StringVar(&f.Plot, "plot", "", "draw the timeline of the last round into this `file`, .svg or .png")
	}
	fail := func(code int, err error) int {
		fmt.Fprintf(stderr, "%s: %s\n", name, oneLine(err))
		return code
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "%s: %s\n\nflags:\n", name, what)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	case err != nil:
		return fail(2, fmt.Errorf("%w (-h lists the flags)", err))
	case fs.NArg() > 0:
		return fail(2, fmt.Errorf("there is no argument %q; everything is a flag", fs.Arg(0)))
	case f.Heap < 0:
		return fail(2, fmt.Errorf("-heap is %d; it is a number of bytes, or 0", f.Heap))
	case f.Linger < 0:
		return fail(2, fmt.Errorf("-linger is %v; it is a time from 0", f.Linger))
	}
	if f.Plot != "" {
		if err := picture.CheckFile(f.Plot); err != nil {
			return fail(2, fmt.Errorf("-plot: %w", err))
		}
	}
	if _, err := hip.Open(f.Platform); err != nil {
		return fail(2, fmt.Errorf("-platform: %w", err))
	}
	f.Say("%s: %s", name, what)
	result, err := run(ctx, f)
	if result != nil {
		err = errors.Join(err, f.show(result))
	}
	if err == nil && !result.Verified() {
		err = errors.New("wrong bytes arrived")
	}
	if err != nil {
		return fail(1, err)
	}
	return 0
}

// show prints a result as -json has it.
func (f *Flags) show(r Result) error {
	if f.JSON {
		return json.NewEncoder(f.out).Encode(r)
	}
	for _, row := range r.Table() {
		fmt.Fprintf(f.out, "  %-22s %s\n", row[0], row[1])
	}
	return nil
}

// oneLine puts joined errors on a line.
func oneLine(err error) string {
	return strings.Join(strings.Split(err.Error(), "\n"), "; ")
}

// Say tells people what is going on, unless -json was given.
func (f *Flags) Say(format string, args ...any) {
	if !f.JSON {
		fmt.Fprintf(f.out, format+"\n", args...)
	}
}

// Note tells people, on standard error, what they need to know whatever the
// flags say.
func (f *Flags) Note(format string, args ...any) { fmt.Fprintf(f.err, format+"\n", args...) }

// Detail tells more, with -v.
func (f *Flags) Detail(format string, args ...any) {
	if f.Verbose {
		fmt.Fprintf(f.err, format+"\n", args...)
	}
}

// progressEvery is how long work goes on between two lines about it, barEvery
// between two states of a bar.
const (
	progressEvery = time.Second
	barEvery      = 100 * time.Millisecond
)

// Progress tells, about once a second, how far long work has come. One
// goroutine calls it.
func (f *Flags) Progress(what string, done, all int, about ...string) {
	if f.last.IsZero() {
		f.last = time.Now()
	}
	if f.JSON && !f.Verbose || time.Since(f.last) < progressEvery {
		return
	}
	f.last = time.Now()
	fmt.Fprintf(f.err, "  %s %d of %d %s\n", what, done, all, strings.Join(about, ", "))
}

// stampBytes is room for the stamps of a timeline.
const stampBytes = 64 << 20

// barCells is how wide a progress bar is.
const barCells = 30

// Bar shows how far long work has come, with what there is to say about it: as
// a bar that grows where people watch a terminal, else as a line now and then.
// One goroutine calls it.
func (f *Flags) Bar(what string, done, all int, about string) {
	if f.JSON && !f.Verbose {
		return
	}
	if !f.terminal {
		f.Progress(what, done, all, about)
		return
	}
	if done < all && time.Since(f.last) < barEvery {
		return
	}
	f.last = time.Now()
	full := barCells * done / all
	fmt.Fprintf(f.err, "\r  %s %d of %d [%s%s] %s ", what, done, all, strings.Repeat("#", full), strings.Repeat(".", barCells-full), about)
	if done == all {
		fmt.Fprintln(f.err)
	}
}

// HeapBytes is the heap that -heap asks for, or else what n bytes need.
func (f *Flags) HeapBytes(n int64) int64 {
	switch {
	case f.Heap != 0:
		return f.Heap
	case f.Trace != "" || f.Plot != "":
		return n + stampBytes
	}
	return n
}
