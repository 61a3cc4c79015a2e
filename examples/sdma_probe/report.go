package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// report is what was found, for people and for -json.
type report struct {
	Example  string   `json:"example"`
	Platform string   `json:"platform"`
	System   string   `json:"system"`
	Devices  []device `json:"devices"`
	Pairs    []pair   `json:"pairs"`
	AllRight bool     `json:"verified"`
}

type device struct {
	Name        string `json:"name"`
	Arch        string `json:"arch"`
	LargestCopy int64  `json:"largest_copy"`
	Mapped      bool   `json:"mapped"` // the host uses its memory in place
}

// pair is a queue. Times are in microseconds, the median of the rounds; that of
// the fence includes making the queue, that of the chunk is from opening its
// gate to its signal.
type pair struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Engine string  `json:"engine"`
	Fence  float64 `json:"fence_us"`
	Copy   float64 `json:"copy_us"`
	Window float64 `json:"window_us"`
	Chunk  float64 `json:"chunk_us"`
	Error  string  `json:"error,omitempty"`
}

func newReport(p *prober) *report {
	r := &report{Example: name, Platform: p.platform.Describe(), System: system()}
	for i, e := range p.ends {
		if i < p.platform.Devices() {
			props := e.dev.Properties()
			r.Devices = append(r.Devices, device{e.dev.Name(), props.Arch, props.LargestCopy, e.memory.Mapped()})
		}
	}
	return r
}

// system is the kernel and the compiler.
func system() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.Version()
	}
	return fmt.Sprintf("%s %s, %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), runtime.Version())
}

func (r *report) failed() (n int) {
	for _, p := range r.Pairs {
		if p.Error != "" {
			n++
		}
	}
	r.AllRight = n == 0
	return n
}

// Verified implements example.Result.
func (r *report) Verified() bool { return r.AllRight }

// Table implements example.Result.
func (r *report) Table() [][2]string {
	rows := [][2]string{{"platform", r.Platform}, {"system", r.System}}
	for _, d := range r.Devices {
		how := "through the device"
		if d.Mapped {
			how = "in place"
		}
		rows = append(rows, [2]string{d.Name, fmt.Sprintf("%s, copies of up to %d bytes, memory used %s", d.Arch, d.LargestCopy, how)})
	}
	for _, p := range r.Pairs {
		what := fmt.Sprintf("fence %.0f µs, copy %.1f, window %.1f, chunk %.1f; %s", p.Fence, p.Copy, p.Window, p.Chunk, p.Engine)
		if p.Error != "" {
			what = "FAILED: " + p.Error
			if p.Engine != "" {
				what += "; " + p.Engine
			}
		}
		rows = append(rows, [2]string{p.From + "→" + p.To, what})
	}
	return append(rows, [2]string{"every byte verified", fmt.Sprint(r.AllRight)})
}
