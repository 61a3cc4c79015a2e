package softengine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
)

// touch makes every page present, so that no benchmark counts page faults.
func touch(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}

// drive executes prog over and over in an 8 MiB ring. It drives the engine
// itself, without a goroutine, so that nothing else is measured.
func drive(b *testing.B, r *rig, prog *sdma.Program) {
	b.Helper()
	r.engine.Stop()
	r.engine.stopping.Store(false)
	b.ReportAllocs()
	for b.Loop() {
		at := r.ring.Written()
		if _, err := r.ring.Append(prog); err != nil {
			b.Fatal(err)
		}
		if _, err := r.engine.follow(at, r.ring.Written()); err != nil {
			b.Fatal(err)
		}
		r.ring.Ring()
	}
	n := float64(r.engine.Stats().Packets)
	b.ReportMetric(n/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/packet")
}

// BenchmarkPackets is what an engine takes for packets that move next to
// nothing, 1000 a program.
func BenchmarkPackets(b *testing.B) {
	for _, c := range []struct {
		name string
		add  func(r *rig, p *sdma.Program, i int64) error
	}{
		{"fence", func(r *rig, p *sdma.Program, i int64) error { return p.Fence(r.addr(8*i), uint32(i)) }},
		{"signal", func(r *rig, p *sdma.Program, i int64) error { return p.Signal(r.addr(8*i), 1) }},
		{"open-poll", func(r *rig, p *sdma.Program, i int64) error { return p.Poll(r.addr(8*i), 0) }},
		{"copy-64", func(r *rig, p *sdma.Program, i int64) error {
			return p.Copy(r.addr(64*i), r.addr(64*i+64000), 64, 1, 64, 64)
		}},
		{"window-2x64", func(r *rig, p *sdma.Program, i int64) error {
			return p.Copy(r.addr(64*i), r.addr(64*i+64000), 64, 2, 128, 128)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, 1<<20, 8<<20, 0, nil)
			var prog sdma.Program
			for i := range int64(1000) {
				if err := c.add(r, &prog, i); err != nil {
					b.Fatal(err)
				}
			}
			drive(b, r, &prog)
		})
	}
}

// BenchmarkCopy moves 64 MiB a program, beside plain copy of the same bytes.
func BenchmarkCopy(b *testing.B) {
	const total = 64 << 20
	for _, c := range []struct{ width, height int64 }{
		{4 << 10, 1}, {64 << 10, 1}, {1 << 20, 1}, {64 << 20, 1},
		{64, 256}, {256, 256}, {1024, 256}, {4096, 256},
	} {
		pitch := c.width
		if c.height > 1 {
			pitch += 64
		}
		rows := total / pitch / c.height * c.height
		each := func(do func(off int64)) {
			for row := int64(0); row < rows; row += c.height {
				do(row * pitch)
			}
		}
		name := fmt.Sprintf("%dx%d", c.width, c.height)
		b.Run("engine/"+name, func(b *testing.B) {
			r := newRig(b, 2*total, 8<<20, 0, nil)
			touch(r.mem.Bytes(0, 2*total))
			var prog sdma.Program
			each(func(off int64) {
				if err := prog.Copy(r.addr(off), r.addr(total+off), c.width, c.height, pitch, pitch); err != nil {
					b.Fatal(err)
				}
			})
			b.SetBytes(rows * c.width)
			drive(b, r, &prog)
		})
		b.Run("copy/"+name, func(b *testing.B) {
			mem := alloc(b, 2*total).Bytes(0, 2*total)
			touch(mem)
			b.SetBytes(rows * c.width)
			for b.Loop() {
				each(func(off int64) {
					for i := range c.height {
						at := off + i*pitch
						copy(mem[total+at:total+at+c.width], mem[at:at+c.width])
					}
				})
			}
		})
	}
}

// BenchmarkTrigger is the time from a gate's store to the arrival's wake-up,
// with a copy of 4 KiB between.
func BenchmarkTrigger(b *testing.B) {
	r := newRig(b, 1<<20, 8<<20, 0, nil)
	gate, arrival, w := r.mem.Word(0), r.mem.Word(64), hip.NewWaiter()
	b.ReportAllocs()
	var prog sdma.Program
	for _, add := range []func(*sdma.Program) error{poll(r.addr(0), 0), linear(r.addr(4096), r.addr(8192), 4096), signal(r.addr(64), 1)} {
		if err := add(&prog); err != nil {
			b.Fatal(err)
		}
	}
	for i := range b.N {
		round := uint64(i + 1)
		prog.SetRound(uint32(round))
		if _, err := r.ring.Append(&prog); err != nil {
			b.Fatal(err)
		}
		r.ring.Ring()
		gate.Store(round)
		if err := w.Await(context.Background(), arrival, func(v uint64) bool { return v >= round }, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParked is the process's CPU time, in percent of one core, while 56
// engines wait at closed gates.
func BenchmarkParked(b *testing.B) {
	const engines = 56
	for i := range engines {
		r := newRig(b, 4096, 4096, 0, nil)
		r.submit(poll(r.addr(0), uint32(i+1)), signal(r.addr(8), 1))
		r.parked(1)
	}
	runtime.GC()
	b.ResetTimer()
	before := cpu(b)
	for range b.N {
		time.Sleep(500 * time.Millisecond)
	}
	b.ReportMetric(100*(cpu(b)-before).Seconds()/b.Elapsed().Seconds(), "%core")
}

func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCollectionDuringCopy forces collections while 256 MiB are copied. It
// reports how long they took, and the longest that one waited for every
// goroutine to stop, which is where a copy without yields would hold it up (it
// would also leave time for one collection a copy only).
func BenchmarkCollectionDuringCopy(b *testing.B) {
	const n = 256 << 20
	r := newRig(b, 2*n, 4096, 0, nil)
	touch(r.mem.Bytes(0, 2*n))
	before := stops()
	b.ResetTimer()
	var took []time.Duration
	for range b.N {
		end := r.submit(linear(r.addr(0), r.addr(n), n))
		for r.read.Load() < end {
			start := time.Now()
			runtime.GC()
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(1e3*took[len(took)/2].Seconds(), "median-GC-ms")
	b.ReportMetric(1e3*took[len(took)-1].Seconds(), "worst-GC-ms")
	b.ReportMetric(1e3*longestStop(before, stops()), "worst-stop-ms")
	b.ReportMetric(float64(len(took))/float64(b.N), "collections/copy")
}

// stops is the histogram of how long collections took to stop the world.
func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// longestStop is the upper bound in seconds of the longest stop between two
// histograms.
func longestStop(before, after *metrics.Float64Histogram) float64 {
	longest := 0.0
	for i, n := range after.Counts {
		if n > before.Counts[i] {
			longest = after.Buckets[i+1]
		}
	}
	return longest
}
