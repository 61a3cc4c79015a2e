package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// allGather compares linear copies with memcpy. The limit is for 64 MiB from
// each of four ranks.
func allGather(s *suite) error {
	for _, ranks := range pick(s, []int{2}, []int{2, 4, 8}, []int{2, 4, 8}) {
		for _, mib := range pick(s, []int64{1}, []int64{1, 4, 16, 64}, []int64{1, 4, 16, 64, 256}) {
			if int64(ranks)*int64(ranks)*mib > 1<<10 && s.scope < full { // memory, and time
				continue
			}
			limit := map[bool]float64{true: 0.90}[ranks == 4 && mib == 64]
			if err := s.gathered(shape{ranks: ranks, bytes: mib << 20}, limit); err != nil {
				return err
			}
		}
	}
	return nil
}

// windowGather compares windows with memcpy of the same bytes.
func windowGather(s *suite) error {
	for _, width := range pick(s, []int64{64}, []int64{64, 256, 1024, 4096}, []int64{64, 128, 256, 512, 1024, 2048, 4096}) {
		sh := shape{ranks: pick(s, 2, 4, 4), bytes: pick(s, int64(1), 64, 64) << 20, width: width}
		limit := map[bool]float64{true: 0.75}[s.scope > brief && width >= 1<<10]
		if err := s.gathered(sh, limit); err != nil {
			return err
		}
	}
	return nil
}

// gathered reports sh beside memcpy, with a limit unless that is 0.
func (s *suite) gathered(sh shape, limit float64) error {
	ratio, rate, err := s.gather(sh)
	if err != nil {
		return fmt.Errorf("%v: %w", sh, err)
	}
	r := s.result(sh.String(), "×memcpy", ratio)
	if limit > 0 {
		r = r.atLeast(limit)
	}
	if err := s.emit(r); err != nil {
		return err
	}
	return s.emit(s.result(sh.String(), "GB/s", rate))
}

// turnSeconds is how long a turn of something short goes on.
const turnSeconds = 0.05

// gather is the speed of an all-gather as a part of memcpy's, and in GB/s.
func (s *suite) gather(sh shape) (ratio, rate []float64, err error) {
	w, err := s.planned(sh.ranks, sh.total(), sh.schedule)
	if err != nil {
		return nil, nil, err
	}
	defer w.shut(&err)
	if err := w.prove(sh); err != nil {
		return nil, nil, err
	}
	each, err := w.rounds(2)
	if err != nil {
		return nil, nil, err
	}
	n := howMany(each, turnSeconds)
	samples, err := takeTurns(s.turns(),
		func() (float64, error) { return w.rounds(n) },
		func() (float64, error) { return w.memcpy(sh, n), nil })
	if err != nil {
		return nil, nil, err
	}
	return ratios(samples[1], samples[0]), inverse(samples[0], float64(sh.moved())/1e9), nil
}

// prove runs a round and fails unless every rank then has every other's bytes,
// which differ by rank and place.
func (w *world) prove(sh shape) error {
	for r := range sh.ranks {
		mine := w.bytes(r)[int64(r)*sh.bytes:][:sh.bytes]
		for i := range mine {
			mine[i] = pattern(r, i)
		}
	}
	if _, err := w.rounds(1); err != nil {
		return err
	}
	for at := range sh.ranks {
		for from := range sh.ranks {
			got := w.bytes(at)[int64(from)*sh.bytes:][:sh.bytes]
			for i := range got {
				if got[i] != pattern(from, i) {
					return fmt.Errorf("byte %d from rank %d is wrong on rank %d", i, from, at)
				}
			}
		}
	}
	return nil
}

func pattern(rank, i int) byte { return byte(i>>16) ^ byte(i) ^ byte(rank*37+1) }

// bytes is rank r's tensor.
func (w *world) bytes(r int) []byte {
	t := w.out[r]
	return t.Memory().Bytes(t.Block().Offset(), t.Size())
}

// memcpy moves what n rounds of sh move, with Go's copy, block by block, on as
// many threads as there are processors. It returns the seconds for one.
func (w *world) memcpy(sh shape, n int) float64 {
	type job struct{ dst, src []byte }
	var jobs []job
	for src := range sh.ranks {
		for dst := range sh.ranks {
			if src != dst {
				at := int64(src) * sh.bytes
				jobs = append(jobs, job{w.bytes(dst)[at:][:sh.bytes], w.bytes(src)[at:][:sh.bytes]})
			}
		}
	}
	began := time.Now()
	for range n {
		var next atomic.Int64
		var threads sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), len(jobs)) {
			threads.Go(func() {
				for i := next.Add(1); i <= int64(len(jobs)); i = next.Add(1) {
					copy(jobs[i-1].dst, jobs[i-1].src)
				}
			})
		}
		threads.Wait()
	}
	return time.Since(began).Seconds() / float64(n)
}
