package plan

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrEmpty says that no rank sends anything.
	ErrEmpty = errors.New("plan: every rank's schedule is empty; at least one rank must send a chunk")
	// ErrBuffer says that ranks passed different buffers.
	ErrBuffer = errors.New("plan: ranks passed different buffers; every rank passes the same tensor")
	// ErrCut is why a plan is FAILED whose preparation panicked or ended its
	// goroutine.
	ErrCut = errors.New("plan: the preparation of a round was cut short by a panic or runtime.Goexit")
)

// StateError says that an operation is not allowed in a plan's state.
type StateError struct {
	Op, Plan string
	Rank     int
	State    State
	Want     State
	Err      error // why the plan is FAILED
}

func (e *StateError) Error() string {
	s := fmt.Sprintf("plan: %s of %s on rank %d needs state %v, but it is %v; allowed next: %s", e.Op, e.Plan, e.Rank, e.Want, e.State, next[e.State])
	if e.Err != nil {
		s += fmt.Sprintf("; it failed because: %v", e.Err)
	}
	return s
}
func (e *StateError) Unwrap() error { return e.Err }

// RoundsError says that a plan has had its last round.
type RoundsError struct{ Plan string }

func (e *RoundsError) Error() string {
	return fmt.Sprintf("plan: %s has had %d rounds, the most that a plan has; close it and make a new one", e.Plan, uint64(maxRound))
}

// PeerError says that a plan failed because it failed on another rank.
type PeerError struct {
	Plan string
	Peer int
	Err  error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("plan: %s has failed on rank %d: %v", e.Plan, e.Peer, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// OverlapError says that two ranks send the same bytes.
type OverlapError struct {
	RankA, RankB   int
	ChunkA, ChunkB int // of each rank's schedule
	Lo, Hi         int64
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("plan: rank %d (chunk %d) and rank %d (chunk %d) both send bytes %d to %d of the buffer; each rank's schedule is built from its own part, not from the whole buffer",
		e.RankA, e.ChunkA, e.RankB, e.ChunkB, e.Lo, e.Hi)
}

// OutsideError says that a region is not in the bytes that a plan may send.
type OutsideError struct {
	Rank, Chunk, Region int
	Lo, Hi              int64 // the region
	From, To            int64 // where it must lie
	What                string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("plan: rank %d: chunk %d, region %d covers bytes %d to %d of the buffer, outside %s (%d to %d)",
		e.Rank, e.Chunk, e.Region, e.Lo, e.Hi, e.What, e.From, e.To)
}

// RowsError says that an all-gather cannot divide a tensor's rows equally.
type RowsError struct{ Rows, Ranks int }

func (e *RowsError) Error() string {
	return fmt.Sprintf("plan: an all-gather divides the tensor's rows equally among the ranks, and %d ranks do not divide %d rows; give it a multiple", e.Ranks, e.Rows)
}

// CutError says that a round's data is not whole, because a peer closed the
// plan in the middle of it.
type CutError struct {
	Plan  string
	Rank  int
	Round uint64
	Peer  int
}

func (e *CutError) Error() string {
	return fmt.Sprintf("plan: Wait of %s on rank %d, round %d: rank %d closed the plan before it had marked all of its chunks; they were sent as they stood", e.Plan, e.Rank, e.Round, e.Peer)
}

// HandleError says that a handle may not be launched with.
type HandleError struct {
	Plan string
	Why  string
}

func (e *HandleError) Error() string {
	return fmt.Sprintf("plan: the handle of %s cannot be launched with: %s", e.Plan, e.Why)
}

// Miscount is a chunk with the wrong number of marks.
type Miscount struct {
	Chunk, Owner   int
	Seen, Expected uint64 // marks in the round
}

// MarksError says that a rank's kernels marked chunks too often, or chunks that
// are not the rank's.
type MarksError struct {
	Plan    string
	Rank    int
	Round   uint64
	Extra   []Miscount // own chunks with more marks than writers
	Foreign uint64     // marks of chunks that are another rank's or do not exist
	Last    uint64     // the chunk of the last of these
	First   int        // the rank's chunks are First to First+Own-1
	Own     int
}

func (e *MarksError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan: Wait of %s on rank %d, round %d:", e.Plan, e.Rank, e.Round)
	for i, c := range e.Extra {
		b.WriteString([]string{"", ";"}[min(i, 1)])
		fmt.Fprintf(&b, " chunk %d was marked %d times, its writers are %d", c.Chunk, c.Seen, c.Expected)
	}
	if e.Foreign > 0 {
		if len(e.Extra) > 0 {
			b.WriteString(";")
		}
		fmt.Fprintf(&b, " %d marks of chunks that are not the rank's, the last of chunk %d (its own are %s)", e.Foreign, e.Last, span(e.First, e.Own))
	}
	b.WriteString("; each chunk is marked exactly writers times a round, by the programs that write it")
	return b.String()
}

func span(first, n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d", first, first+n-1)
}

// Short is a chunk that is not where it should be when a Wait ends.
type Short struct {
	Chunk, Owner int
	Peer         int // the rank it has not arrived at; the owner if it is not marked
	Why          string
}

func (s Short) String() string {
	at := ""
	if s.Peer != s.Owner {
		at = fmt.Sprintf(" at rank %d", s.Peer)
	}
	return fmt.Sprintf("chunk %d of rank %d%s: %s", s.Chunk, s.Owner, at, s.Why)
}

// TimeoutError says what a Wait was still waiting for when its context ended.
// It unwraps to the context's cause.
type TimeoutError struct {
	Plan    string
	Rank    int
	Round   uint64
	Short   []Short
	Running []string // kernels that run on the rank
	Err     error
}

// maxShort is how many chunks an error spells out.
const maxShort = 16

func (e *TimeoutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan: Wait of %s on rank %d, round %d ended early (%v)", e.Plan, e.Rank, e.Round, e.Err)
	if len(e.Running) > 0 {
		fmt.Fprintf(&b, "; still running: %s", strings.Join(e.Running, ", "))
	}
	for i, s := range e.Short[:min(len(e.Short), maxShort)] {
		b.WriteString([]string{"; short: ", "; "}[min(i, 1)])
		b.WriteString(s.String())
	}
	if n := len(e.Short) - maxShort; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	return b.String()
}
func (e *TimeoutError) Unwrap() error { return e.Err }

// opError wraps what made a plan's operation fail on a rank.
type opError struct {
	op, plan string
	rank     int
	err      error
}

func (e *opError) Error() string {
	return fmt.Sprintf("plan: %s of %s on rank %d: %v", e.op, e.plan, e.rank, e.err)
}
func (e *opError) Unwrap() error { return e.err }
