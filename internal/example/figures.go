package example

import (
	"errors"
	"fmt"
	"time"
)

// Figures are what a program that moves bytes in rounds ends its result with.
type Figures struct {
	Bytes      int64   `json:"bytes_per_round"`
	SecondsPer float64 `json:"seconds_per_round"`
	GBytesPer  float64 `json:"gbytes_per_second"`
	AllRight   bool    `json:"verified"`
}

// Verified says whether every byte was right.
func (f *Figures) Verified() bool { return f.AllRight }

// Spent notes how long all rounds took together.
func (f *Figures) Spent(all time.Duration, rounds int) {
	f.SecondsPer = all.Seconds() / float64(rounds)
	f.GBytesPer = float64(f.Bytes) / f.SecondsPer / 1e9
}

// End notes how the run ended, and says whether there is a result to show: there
// is if bytes were wrong, and none if the run could not be made.
func (f *Figures) End(err error) (show bool) {
	wrong := (*WrongError)(nil)
	f.AllRight = err == nil
	return err == nil || errors.As(err, &wrong)
}

// Lines are the figures for people; moved is the program's word for what it does
// with bytes.
func (f *Figures) Lines(moved string) [][2]string {
	return [][2]string{
		{"bytes " + moved + " per round", fmt.Sprint(f.Bytes)},
		{"time per round", time.Duration(f.SecondsPer * 1e9).Round(time.Microsecond).String()},
		{"GB/s", fmt.Sprintf("%.2f", f.GBytesPer)},
		{"every byte verified", fmt.Sprint(f.AllRight)},
	}
}

// WrongError says that a rank has data that is not what it must be.
type WrongError struct {
	Rank  int
	Round uint64
	What  string // that it has
}

func (e *WrongError) Error() string {
	return fmt.Sprintf("round %d: rank %d has %s", e.Round, e.Rank, e.What)
}

// Wrong is a *WrongError if there are wrong bytes.
func Wrong(rank int, round, bytes uint64, where string, args ...any) error {
	if bytes == 0 {
		return nil
	}
	return &WrongError{rank, round, fmt.Sprintf("%d wrong bytes in ", bytes) + fmt.Sprintf(where, args...)}
}
