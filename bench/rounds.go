package main

import "fmt"

// chunkBytes is the size of a chunk where only their number counts.
const chunkBytes = 64

// rounds compares with a skeleton. The limit is for one chunk from each of four
// ranks.
func rounds(s *suite) error {
	for _, ranks := range pick(s, []int{2, 4}, []int{2, 4, 8, 16}, []int{2, 4, 8, 16}) {
		for _, chunks := range []int{1, 64} {
			sh := shape{ranks: ranks, bytes: int64(chunkBytes * chunks), chunks: chunks}
			name := fmt.Sprintf("%d ranks × %s", ranks, count(chunks, "chunk"))
			ratio, took, err := s.besideSkeleton(sh, s.wornIn)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			r := s.result(name, "×skeleton", ratio)
			if ranks == 4 && chunks == 1 {
				r = r.atMost(4)
			}
			if err := s.emit(r); err != nil {
				return err
			}
			if err := s.emit(s.result(name, "rounds/s", inverse(took, 1))); err != nil {
				return err
			}
		}
	}
	ratio, _, err := s.besideSkeleton(shape{ranks: 4, bytes: chunkBytes, chunks: 1}, func(sh shape) (*world, error) {
		return s.planned(sh.ranks, sh.total(), sh.schedule)
	})
	if err != nil {
		return err
	}
	return s.emit(s.result("4 ranks × 1 chunk, new rings of 8 MiB", "×skeleton", ratio))
}

// besideSkeleton is how long a round takes, in times of a skeleton's and in
// seconds.
func (s *suite) besideSkeleton(sh shape, open func(shape) (*world, error)) (ratio, took []float64, err error) {
	w, err := open(sh)
	if err != nil {
		return nil, nil, err
	}
	defer w.shut(&err)
	k := newSkeleton(sh.ranks, sh.chunks)
	defer k.stop()
	each, err := w.rounds(20)
	if err != nil {
		return nil, nil, err
	}
	n := howMany(each, 2*turnSeconds)
	samples, err := takeTurns(s.turns(),
		func() (float64, error) { return w.rounds(n) },
		func() (float64, error) { return k.rounds(n), nil })
	if err != nil {
		return nil, nil, err
	}
	return ratios(samples[0], samples[1]), samples[0], nil
}
