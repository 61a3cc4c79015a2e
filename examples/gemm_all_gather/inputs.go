package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/rank"
)

// elem is the size of a bfloat16.
const elem = example.Elem

// inputs are the two factors on a rank: a, its own and new in every round, and
// b, the same on all ranks.
type inputs struct {
	rank       *rank.Rank
	a, b       *heap.Tensor
	aHere      []byte // what a holds
	bHere      []byte
	cols, deep int
}

func (g *gather) newInputs(ctx context.Context, r *rank.Rank) (*inputs, error) {
	in := &inputs{rank: r, cols: g.cols, deep: g.depth}
	var err error
	if in.a, err = r.Zeros(ctx, heap.BFloat16, g.rows, g.depth); err != nil {
		return nil, err
	}
	if in.b, err = r.Zeros(ctx, heap.BFloat16, g.depth, g.cols); err != nil {
		return nil, err
	}
	in.aHere, in.bHere = make([]byte, in.a.Size()), make([]byte, in.b.Size())
	fill(in.bHere, 1)
	return in, in.b.Write(in.bHere)
}

// write gives a the round's elements.
func (in *inputs) write(round int) error {
	fill(in.aHere, uint64(round)<<16|uint64(in.rank.ID()+2))
	return in.a.Write(in.aHere)
}

// fill writes elements of -1 to 1 in steps of an eighth, all of which bfloat16
// has.
func fill(to []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := 0; i < len(to); i += elem {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint16(to[i:], narrow(float32(int(x>>40%17)-8)/8))
	}
}

// narrow rounds to the nearest bfloat16, and to the even one of two.
func narrow(f float32) uint16 {
	bits := math.Float32bits(f)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func widen(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

func element(of []byte, i int) float64 {
	return float64(widen(binary.LittleEndian.Uint16(of[elem*i:])))
}

// product is an element of a b in float64, and what rounding may take it away
// from that: sums are float32, the result bfloat16.
func (in *inputs) product(row, col int) (want, slack float64) {
	size := 0.0
	for i := range in.deep {
		x := element(in.aHere, row*in.deep+i) * element(in.bHere, i*in.cols+col)
		want += x
		size += math.Abs(x)
	}
	return want, math.Abs(want)*0x1p-8 + size*0x1p-20 + 0x1p-30
}
