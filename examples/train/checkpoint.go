package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkpoint is what a training goes on from. Nothing in it depends on the
// number of ranks.
type checkpoint struct {
	Format   string
	Seed     uint64
	Step     int       // steps done
	Losses   []float64 // of these
	Params   []float32 // that the last step used
	M, V     []float32
	Gradient []float64 // that the last step gave
}

// format changes with the model.
const format = "sluice train 1"

func newCheckpoint(seed uint64) checkpoint {
	return checkpoint{Format: format, Seed: seed, Params: make([]float32, weight), M: make([]float32, weight), V: make([]float32, weight), Gradient: make([]float64, weight)}
}

// take copies what a rank owns. Every rank does it.
func (c *checkpoint) take(w *worker) {
	lo, hi := w.firstBlock*blockRows*width, w.endBlock*blockRows*width
	copy(c.Params[lo:hi], w.params[lo:hi])
	copy(c.M[lo:hi], w.m[lo:hi])
	copy(c.V[lo:hi], w.v[lo:hi])
	for i := lo; i < hi; i++ {
		c.Gradient[i] = w.gradient(i)
	}
}

// write replaces the file, or leaves it as it is.
func (c *checkpoint) write(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	if err := errors.Join(gob.NewEncoder(f).Encode(c), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), file)
}

// readCheckpoint returns nil if there is no such file yet.
func readCheckpoint(file string, seed uint64) (*checkpoint, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	c := new(checkpoint)
	if err := gob.NewDecoder(f).Decode(c); err != nil {
		return nil, fmt.Errorf("%s is no checkpoint: %w", file, err)
	}
	switch {
	case c.Format != format || len(c.Params) != weight || len(c.M) != weight || len(c.V) != weight || len(c.Gradient) != weight || len(c.Losses) != c.Step || c.Step < 1:
		return nil, fmt.Errorf("%s is a checkpoint of another model (%q, this is %q)", file, c.Format, format)
	case c.Seed != seed:
		return nil, fmt.Errorf("%s was begun with -seed %d, and this run has -seed %d; a training has one seed", file, c.Seed, seed)
	}
	return c, nil
}
