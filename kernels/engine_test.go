package kernels_test

import (
	"testing"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/copyengine/softengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

func TestRuleACopyEngineCarriesWholeChunksFromAProducerToAConsumer(t *testing.T) {
	const rows, width, tileRows, tileBytes, programs, group = 40, 72, 16, 32, 3, 2
	tiles := make([][]kernels.Region, 3)
	for step := range 9 {
		tile := kernels.TileOf(step, 3, 3, group)
		row, col := int64(tile/3*tileRows), int64(tile%3*tileBytes)
		tiles[step/programs] = append(tiles[step/programs], kernels.Region{
			Offset: row*width + col, Pitch: width,
			Width: min(tileBytes, width-col), Height: min(tileRows, rows-row),
		})
	}
	writers := []int{programs, programs, programs}
	from := newRig(t, shape{rank: 0, world: 2, own: 3, writers: writers, buffer: rows * width})
	to := newRig(t, shape{rank: 1, world: 2, owner: 0, writers: writers, buffer: rows * width})
	table := to.words(kernels.ConsumerTable(tiles))
	program := chains(t, from, to, tiles)
	ring := newQueue(t)
	for round := uint64(1); round <= 40; round++ {
		from.start(round)
		to.start(round)
		program.SetRound(uint32(round))
		if _, err := ring.Append(program); err != nil {
			t.Fatal(err)
		}
		ring.Ring()
		to.launch(kernels.Consumer, kernels.Waits(hip.Grid{Blocks: 2, Threads: 4}),
			to.handle.Addr(), to.buffer.Addr(), table, 31, to.errors.Addr())
		from.mustRun(kernels.Tiled, hip.Grid{Blocks: programs, Threads: 4},
			from.handle.Addr(), from.buffer.Addr(), 0, rows, width, width, tileRows, tileBytes, programs, group, 31)
		if err := to.stream.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
		wrong, checked := to.errors.Word(kernels.ErrorBytes).Load(), to.errors.Word(kernels.ErrorChecked).Load()
		if wrong != 0 || checked != 3*round {
			t.Fatalf("round %d: %d wrong bytes in %d chunks since the first round, want 0 in %d", round, wrong, checked, 3*round)
		}
	}
}

// chains is, for each chunk in order, a poll of its gate, the copies of its
// regions and the signal of its arrival.
func chains(t *testing.T, from, to *rig, chunks [][]kernels.Region) *sdma.Program {
	t.Helper()
	p := new(sdma.Program)
	row := func(r *rig, chunk int, word uint64) uint64 {
		return r.gates.Addr() + uint64(chunk)*kernels.GateRow + word
	}
	for c, regions := range chunks {
		errs := []error{p.Poll(row(from, c, kernels.GateReady), 0)}
		for _, g := range regions {
			src, dst := from.buffer.Addr()+uint64(g.Offset), to.buffer.Addr()+uint64(g.Offset)
			errs = append(errs, p.Copy(src, dst, g.Width, g.Height, g.Pitch, g.Pitch))
		}
		errs = append(errs, p.Signal(row(to, c, kernels.GateArrival), 1))
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// newQueue is a small ring, with an engine that executes it.
func newQueue(t *testing.T) *sdma.Ring {
	t.Helper()
	bytes, read, write, bell := make([]byte, sdma.MinRingBytes), new(hip.Word), new(hip.Word), new(hip.Word)
	ring, err := sdma.NewRing(bytes, read, write, sdma.WordDoorbell{Word: bell})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := softengine.Start(softengine.Config{Ring: bytes, Read: read, Doorbell: bell})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		engine.Stop()
		if err := engine.Err(); err != nil {
			t.Error(err)
		}
	})
	return ring
}
