package metrics

import "fmt"

// maxColumns is how many of a rank's chunks the page draws; the JSON has all.
const maxColumns = 256

// matrix is a rank's chunks as the page draws them: a column for each chunk, a
// row for its marks, and one for each peer.
type matrix struct {
	Rank          int
	Before, After int // chunks left out on either side
	Rows          []matrixRow
}

type matrixRow struct {
	Name  string
	Cells []cell
}

// cell is one square: what it looks like, and what it says when touched.
type cell struct {
	Chunk, Peer       int
	State, Sign, Says string
	Late              bool
}

// signs make states differ without colour.
var signs = map[string]string{"waiting": "·", "marked": "m", "sent": "s", "arrived": "✓", "ready": "✓"}

// Matrices are the chunks of each rank that sends any. Of a rank with more
// than fit, those from the first that has not arrived everywhere are drawn.
func (p planView) Matrices() (all []matrix) {
	for from := 0; from < len(p.Chunks); {
		to := from + 1
		for to < len(p.Chunks) && p.Chunks[to].Rank == p.Chunks[from].Rank {
			to++
		}
		all = append(all, newMatrix(p.Chunks[from:to]))
		from = to
	}
	return all
}

func newMatrix(chunks []chunkView) matrix {
	m := matrix{Rank: chunks[0].Rank}
	if n := len(chunks); n > maxColumns {
		for m.Before < n-maxColumns && chunks[m.Before].delivered() {
			m.Before++
		}
		m.After = n - maxColumns - m.Before
		chunks = chunks[m.Before : m.Before+maxColumns]
	}
	marks := matrixRow{Name: "marks"}
	for _, c := range chunks {
		k := cell{Chunk: c.Chunk, Peer: c.Rank, State: "waiting", Says: fmt.Sprintf("chunk %d of rank %d: %d of its %d marks", c.Chunk, c.Rank, c.Marks, c.Writers)}
		if c.Marks >= c.Writers {
			k.State = "ready"
		} else {
			k.Late = len(c.At) > 0 && c.At[0].Late
		}
		k.Sign = signs[k.State]
		marks.Cells = append(marks.Cells, k)
	}
	m.Rows = append(m.Rows, marks)
	for i := range chunks[0].At {
		row := matrixRow{Name: fmt.Sprintf("at %d", chunks[0].At[i].Rank)}
		for _, c := range chunks {
			at := c.At[i]
			k := cell{Chunk: c.Chunk, Peer: at.Rank, State: at.State, Sign: signs[at.State], Late: at.Late}
			k.Says = fmt.Sprintf("chunk %d of rank %d at rank %d: %s", c.Chunk, c.Rank, at.Rank, at.State)
			if at.Late {
				k.Says += ", late"
			}
			row.Cells = append(row.Cells, k)
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

func (c *chunkView) delivered() bool {
	for _, at := range c.At {
		if at.State != "arrived" {
			return false
		}
	}
	return c.Marks >= c.Writers
}
