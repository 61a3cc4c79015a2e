package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// figure is one thing that is measured, in one or more cases.
type figure struct {
	name, about string
	measure     func(*suite) error
}

var figures = []figure{
	{"allgather", "bytes per second of an all-gather, as a part of what memcpy on as many threads reaches", allGather},
	{"windows", "the same for windows of rows", windowGather},
	{"openmpi", "the time of OpenMPI's MPI_Allgather beside ours", openMPI},
	{"prepare", "host time for preparing a round, beside memcpy of the packets' bytes", prepare},
	{"trigger", "from the mark of a 4 KiB chunk to its arrival, beside waking a goroutine that copies", trigger},
	{"rounds", "the time of a round of small chunks, beside a skeleton that only hands off", rounds},
	{"overlap", "how much of the possible saving is realised when copies overlap a producer", overlap},
	{"idle", "CPU time used while everything waits", idle},
	{"collection", "how long a garbage collection waits for a copy to give way", collection},
	{"allocations", "allocations on the Go heap in a round", allocations},
	{"memory", "memory of a queue, a rank and a plan", memory},
	{"growth", "the time of a round and of its preparation as ranks and chunks grow", growth},
}

// scope is how much is measured.
type scope int

const (
	brief scope = iota // enough to see that it works
	usual
	full
)

var scopes = []string{"brief", "usual", "full"}

func parseScope(name string) (scope, error) {
	if i := slices.Index(scopes, name); i >= 0 {
		return scope(i), nil
	}
	return 0, fmt.Errorf("-scope %q; it is one of %s", name, strings.Join(scopes, ", "))
}

// pick is what a scope measures.
func pick[T any](s *suite, brief, usual, full T) T {
	return []T{brief, usual, full}[s.scope]
}

// suite is one run of the program.
type suite struct {
	options
	ctx    context.Context
	figure string // that is measured now
	emit   func(result) error
	notes  io.Writer
}

// turns is how often things take turns.
func (s *suite) turns() int {
	if s.repeats > 0 {
		return s.repeats
	}
	return pick(s, 2, 9, 15)
}

// result begins a result of the present figure.
func (s *suite) result(name, unit string, samples []float64) result {
	return newResult(s.figure, name, unit, samples)
}
