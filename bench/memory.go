package main

import (
	"fmt"
	"os"
	"runtime"
)

// memory is what a queue, a rank and a plan take: on the Go heap, and in
// resident pages of everything. A ring is 8 MiB that become resident as the
// ring is written for the first time; here it has been written to the end.
func memory(s *suite) error {
	const ranks = 8
	alone, err := s.worldMemory(1, 0)
	if err != nil {
		return err
	}
	full, err := s.worldMemory(ranks, 0)
	if err != nil {
		return err
	}
	chunks := pick(s, 16, 1000, 1000)
	withPlan, err := s.worldMemory(ranks, chunks)
	if err != nil {
		return err
	}
	const queues = ranks * (ranks - 1)
	queue := full.minus(alone.times(ranks)).times(1.0 / queues)
	plan := withPlan.minus(full).times(1.0 / float64(ranks*chunks))
	for _, part := range []struct {
		name string
		use  usage
	}{{"a rank, without its heap", alone}, {"a queue that has not been used", queue}, {fmt.Sprintf("a plan, per chunk, with %d peers", ranks-1), plan}} {
		if err := s.emit(s.result(part.name, "KiB of Go heap", []float64{part.use.heap / 1024})); err != nil {
			return err
		}
		if err := s.emit(s.result(part.name, "KiB resident", []float64{part.use.resident / 1024})); err != nil {
			return err
		}
	}
	return nil
}

// usage is memory in bytes.
type usage struct{ heap, resident float64 }

func (u usage) minus(o usage) usage { return usage{u.heap - o.heap, u.resident - o.resident} }

func (u usage) times(f float64) usage { return usage{u.heap * f, u.resident * f} }

// used is what the process uses after a collection.
func used() (usage, error) {
	runtime.GC()
	runtime.GC() // what the first one left to finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return usage{}, err
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		return usage{}, err
	}
	// The heap's pages come and go as the collector likes; what lies outside it
	// does not.
	outside := resident*float64(os.Getpagesize()) - float64(m.HeapSys-m.HeapReleased)
	return usage{float64(m.HeapAlloc), outside + float64(m.HeapAlloc)}, nil
}

// worldMemory is what a world takes, with a plan if it has chunks.
func (s *suite) worldMemory(ranks, chunks int) (u usage, err error) {
	before, err := used()
	if err != nil {
		return usage{}, err
	}
	sh := shape{ranks: ranks, bytes: int64(chunkBytes * chunks), chunks: chunks}
	w, err := s.open(ranks, 1<<20+2*sh.total()+int64(256*ranks*chunks))
	if err != nil {
		return usage{}, err
	}
	defer w.shut(&err)
	if chunks > 0 {
		if err := w.plan(sh.total(), sh.schedule); err != nil {
			return usage{}, err
		}
	}
	after, err := used()
	runtime.KeepAlive(w)
	return after.minus(before), err
}
