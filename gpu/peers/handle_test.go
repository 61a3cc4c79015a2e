//go:build cgo && linux

package peers

import (
	"context"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/kernels"
)

// rowWords are the words of a gate row.
const rowWords = kernels.GateRow / 8

// gateWord is the address of a field of a chunk's gate row on a rank.
func gateWord(gates *heap.Tensor, chunk, on, field int) uint64 {
	return base(gates, on) + uint64(chunk*kernels.GateRow+field)
}

// byHandHandle makes a handle for chains by hand, as a plan would have it, for
// as many chunks on each rank, with so many marks for each of them.
func (m *member) byHandHandle(ctx context.Context, gates *heap.Tensor, each int, writers func(c int) int) (*heap.Tensor, error) {
	chunks := each * m.Size()
	tables := kernels.HandleWords(chunks)
	words := make([]uint64, tables+m.Size()+kernels.FaultRow/8)
	t, err := m.Zeros(ctx, heap.Uint64, len(words))
	if err != nil {
		return nil, err
	}
	at := base(t, m.ID())
	words[kernels.HandleVersion] = kernels.ABIVersion
	words[kernels.HandleChunks], words[kernels.HandleOwn] = uint64(chunks), uint64(each)
	words[kernels.HandleFirst] = uint64(m.ID() * each)
	words[kernels.HandleRank], words[kernels.HandleWorld] = uint64(m.ID()), uint64(m.Size())
	words[kernels.HandleGates] = base(gates, m.ID())
	words[kernels.HandleTables] = at + uint64(8*tables)
	words[kernels.HandleFaults] = at + uint64(8*(tables+m.Size()))
	for c := range chunks {
		words[kernels.HandleChunkWords+2*c] = uint64(writers(c % each))
		words[kernels.HandleChunkWords+2*c+1] = uint64(c / each)
	}
	for r := range m.Size() {
		words[tables+r] = base(gates, r)
	}
	return t, heap.Write(t, words)
}

// setRound has kernels launched with the handle mark a round.
func setRound(handle *heap.Tensor, round uint64) error {
	return heap.Write(handle.Rows(kernels.HandleRound, kernels.HandleRound+1), []uint64{round})
}
