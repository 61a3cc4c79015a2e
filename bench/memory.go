package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// memory is what a queue, a rank and a plan take: on the Go heap, and in
// resident pages, which those of the Go heap are among. A ring is mapped whole
// and becomes resident as it is written for the first time.
func memory(s *suite) error {
	ranks := pick(s, 4, 16, 32)
	queues := ranks * (ranks - 1)
	chunks := pick(s, 16, 1000, 1000)
	var rank, queue, plan []usage
	for range pick(s, 1, 5, 5) {
		alone, err := s.worldMemory(1, 0)
		if err != nil {
			return err
		}
		full, err := s.worldMemory(ranks, 0)
		if err != nil {
			return err
		}
		planned, err := s.worldMemory(4, chunks)
		if err != nil {
			return err
		}
		bare, err := s.worldMemory(4, 0)
		if err != nil {
			return err
		}
		rank = append(rank, alone)
		queue = append(queue, full.minus(alone.times(float64(ranks))).times(1/float64(queues)))
		plan = append(plan, planned.minus(bare).times(1/float64(4*chunks)))
	}
	for _, part := range []struct {
		name string
		uses []usage
	}{{"a rank, without its heap", rank}, {"a queue before its first round", queue}, {"a chunk of a plan of 4 ranks", plan}} {
		heap, resident := make([]float64, len(part.uses)), make([]float64, len(part.uses))
		for i, u := range part.uses {
			heap[i], resident[i] = u.heap/1024, u.resident/1024
		}
		if err := s.emit(s.result(part.name, "KiB of Go heap", heap)); err != nil {
			return err
		}
		if err := s.emit(s.result(part.name, "KiB resident", resident)); err != nil {
			return err
		}
	}
	return nil
}

// usage is memory in bytes.
type usage struct{ heap, resident float64 }

func (u usage) minus(o usage) usage { return usage{u.heap - o.heap, u.resident - o.resident} }

func (u usage) times(f float64) usage { return usage{u.heap * f, u.resident * f} }

// used is what the process uses after everything free has been given back.
func used() (usage, error) {
	debug.FreeOSMemory()
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
	return usage{float64(m.HeapAlloc), resident * float64(os.Getpagesize())}, nil
}

// worldMemory is what a world takes, with a plan if it has chunks.
func (s *suite) worldMemory(ranks, chunks int) (u usage, err error) {
	before, err := used()
	if err != nil {
		return usage{}, err
	}
	sh := shape{ranks: ranks, bytes: int64(chunkBytes * chunks), chunks: chunks}
	w, err := s.open(ranks, 1<<20+2*sh.total()+int64(256*ranks*chunks), 0)
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
