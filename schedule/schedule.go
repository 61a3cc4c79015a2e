package schedule

import (
	"fmt"
	"math"
)

// Chunk is a group of regions that are sent together, in this order, with one
// arrival per peer. Writers is how many marks complete it in each round.
type Chunk struct {
	Regions []Region
	Writers int
}

// Schedule is the chunks that one rank writes, in the order in which its
// producer completes them. An empty one is a rank that sends nothing.
type Schedule []Chunk

// LargestWriters keeps round × writers inside a 64-bit counter for all of a
// plan's 2³² − 1 rounds.
const LargestWriters = math.MaxInt32

// Regions is how many copies the schedule makes to each peer.
func (s Schedule) Regions() int {
	n := 0
	for _, c := range s {
		n += len(c.Regions)
	}
	return n
}

// Bytes is how many bytes the schedule sends to each peer in a round.
func (s Schedule) Bytes() int64 {
	var n int64
	for _, c := range s {
		for _, r := range c.Regions {
			n = add(n, r.Bytes())
		}
	}
	return n
}

// Validate checks every chunk against a buffer of bufferBytes bytes and a
// device that moves at most largestCopy bytes in one copy (0 stands for
// DefaultLargestCopy). The error is an *Error for the first problem.
func (s Schedule) Validate(bufferBytes, largestCopy int64) error {
	if largestCopy == 0 {
		largestCopy = DefaultLargestCopy
	}
	for i, c := range s {
		if c.Writers < 1 || c.Writers > LargestWriters {
			return &Error{Kind: ErrWriters, Chunk: i, Region: -1, Found: int64(c.Writers), Limit: LargestWriters,
				Detail: fmt.Sprintf("%d writers; a chunk is completed by 1 to %d marks each round", c.Writers, LargestWriters)}
		}
		if len(c.Regions) == 0 {
			return &Error{Kind: ErrSize, Chunk: i, Region: -1, Limit: 1,
				Detail: "no regions; leave out a chunk that sends nothing"}
		}
		for j, r := range c.Regions {
			if e := r.check(bufferBytes, largestCopy); e != nil {
				e.Chunk, e.Region = i, j
				return e
			}
		}
	}
	return nil
}

// check names the first thing that is wrong with r.
func (r Region) check(buffer, largest int64) *Error {
	switch {
	case r.Width < 1 || r.Height < 1:
		return &Error{Kind: ErrSize, Found: min(r.Width, r.Height), Limit: 1,
			Detail: fmt.Sprintf("%d rows of %d bytes; both must be at least 1", r.Height, r.Width)}
	case r.Height > 1 && r.Pitch < r.Width:
		return &Error{Kind: ErrPitch, Found: r.Pitch, Limit: r.Width,
			Detail: fmt.Sprintf("%v: rows overlap; the pitch must be at least the width", r)}
	case r.Offset < 0 || r.End() > buffer:
		return &Error{Kind: ErrBounds, Found: r.End(), Limit: buffer,
			Detail: fmt.Sprintf("%v: ends at %d, outside the buffer's %d bytes; offsets count from the start of the allocation", r, r.End(), buffer)}
	case r.Bytes() > largest:
		return &Error{Kind: ErrCopy, Found: r.Bytes(), Limit: largest,
			Detail: fmt.Sprintf("%v: %d bytes in one copy, of which the device moves at most %d; split the region", r, r.Bytes(), largest)}
	case !r.Linear() && r.Pitch > LargestPitch:
		return &Error{Kind: ErrPitch, Found: r.Pitch, Limit: LargestPitch,
			Detail: fmt.Sprintf("%v: the pitch of one copy is at most %d; send each row as a region", r, LargestPitch)}
	}
	return nil
}
