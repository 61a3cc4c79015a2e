package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// openMPI compares with MPI_Allgather, whose ranks are processes. As many
// turns as for anything else would take long, since each starts them anew.
func openMPI(s *suite) error {
	if s.allgather == "" {
		fmt.Fprintln(s.notes, "bench: OpenMPI is left out: -allgather names no program; 'make bench' builds it where there is mpicc")
		return nil
	}
	for _, ranks := range pick(s, []int{2}, []int{2, 4}, []int{2, 4, 8}) {
		for _, mib := range pick(s, []int64{1}, []int64{1, 4, 16, 64}, []int64{1, 4, 16, 64, 256}) {
			sh := shape{ranks: ranks, bytes: mib << 20}
			ratio, err := s.besideOpenMPI(sh)
			if err != nil {
				return fmt.Errorf("%v: %w", sh, err)
			}
			if err := s.emit(s.result(sh.String(), "×OpenMPI", ratio).atLeast(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// besideOpenMPI is how many times as fast as OpenMPI an all-gather is.
func (s *suite) besideOpenMPI(sh shape) (ratio []float64, err error) {
	w, err := s.planned(sh.ranks, sh.total(), sh.schedule)
	if err != nil {
		return nil, err
	}
	defer w.shut(&err)
	each, err := w.rounds(2)
	if err != nil {
		return nil, err
	}
	n := howMany(each, 3*turnSeconds)
	samples, err := takeTurns(pick(s, 1, 5, 9),
		func() (float64, error) { return w.rounds(n) },
		func() (float64, error) { return s.mpirun(sh, n) })
	if err != nil {
		return nil, err
	}
	return ratios(samples[1], samples[0]), nil
}

// mpirun is the seconds of one of n rounds of OpenMPI's. Where there are more
// ranks than processors, one that waits must give way.
func (s *suite) mpirun(sh shape, n int) (float64, error) {
	program, err := filepath.Abs(s.allgather) // mpirun looks up names without a slash only
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(s.ctx, "mpirun", "--allow-run-as-root", "--oversubscribe",
		"--mca", "mpi_yield_when_idle", "1", "-n", strconv.Itoa(sh.ranks),
		program, strconv.FormatInt(sh.bytes, 10), strconv.Itoa(n))
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%v: %w\n%s", cmd, err, stderr.String())
	}
	return strconv.ParseFloat(strings.TrimSpace(stdout.String()), 64)
}
