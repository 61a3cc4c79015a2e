package kernels_test

import (
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// Tests named TestRule are those that every mutant of mark.go must fail. The
// tests here stand in for the copy engine: they see a gate open, and read.

func TestRuleAGateOpensAfterEverythingThatItsWritersWrote(t *testing.T) {
	r := newRig(t, alone(64<<10, 8))
	for round := uint64(1); round <= 30; round++ {
		r.start(round)
		region := kernels.Region{Offset: 128, Width: 1000, Height: 32, Pitch: 1024}
		r.launch(kernels.Fill, hip.Grid{Blocks: 8, Threads: 4}, r.handle.Addr(), r.buffer.Addr(), 128, 1000, 32, 1024, 7, 0)
		r.opened(0)
		r.expect(region, kernels.SeedOf(7, 0, round))
		if err := r.stream.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRuleEveryChunkOfATiledProducerIsWholeWhenItsGateOpens(t *testing.T) {
	const rows, width, pitch, tileRows, tileBytes, programs, group = 40, 72, 80, 16, 32, 3, 2
	const tiles = 3 * 3 // clipped at both edges
	r := newRig(t, alone(rows*pitch, 3, 3, 3))
	for round := uint64(1); round <= 30; round++ {
		r.start(round)
		r.launch(kernels.Tiled, hip.Grid{Blocks: programs, Threads: 4},
			r.handle.Addr(), r.buffer.Addr(), 0, rows, width, pitch, tileRows, tileBytes, programs, group, 99)
		for step := range tiles {
			r.opened(step / programs)
			tile := kernels.TileOf(step, 3, 3, group)
			row, col := int64(tile/3*tileRows), int64(tile%3*tileBytes)
			r.expect(kernels.Region{
				Offset: row*pitch + col, Pitch: pitch,
				Width: min(tileBytes, width-col), Height: min(tileRows, rows-row),
			}, kernels.SeedOf(99, 0, round))
		}
		if err := r.stream.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRuleEightStaggeredWritersOpenTheGateOnceWithAllTheirData(t *testing.T) {
	const writers, part = 8, 512
	r := newRig(t, alone(writers*part, writers))
	gate := r.gate(0, kernels.GateReady)
	for round := uint64(1); round <= 16; round++ {
		r.start(round)
		p := kernels.NewProgram(writers)
		for w := range writers {
			late := time.Duration((uint64(w)*5+round)%writers) * 200 * time.Microsecond
			region := kernels.Region{Offset: int64(w * part), Width: part, Height: 1}
			p.On(w).Delay(late).Fill(r.buffer.Addr(), region, round<<8).Mark(0)
		}
		r.launch(kernels.Script, hip.Grid{Blocks: writers, Threads: 4}, r.handle.Addr(), r.words(p.Words()))
		r.opened(0)
		if v := gate.Load(); v != round {
			t.Fatalf("the gate was opened with %d, want exactly round %d", v, round)
		}
		const seen = 1<<64 - 1
		gate.Store(seen) // a second opening would write over it
		r.expect(kernels.Region{Width: writers * part, Height: 1}, round<<8)
		if err := r.stream.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
		if v := gate.Load(); v != seen {
			t.Fatalf("the gate was opened again, with %d", v)
		}
		gate.Store(round)
		if v := r.gate(0, kernels.GateWriters).Load(); v != round*writers {
			t.Fatalf("%d marks are counted after round %d of %d writers", v, round, writers)
		}
	}
}

func TestAGateStaysShutUntilTheLastWriter(t *testing.T) {
	r := newRig(t, alone(0, 3))
	p := kernels.NewProgram(1)
	p.On(0).Mark(0).Mark(0)
	r.mustRun(kernels.Script, kernels.Grid(1), r.handle.Addr(), r.words(p.Words()))
	if v := r.gate(0, kernels.GateReady).Load(); v != 0 {
		t.Fatalf("two marks of three opened the gate with %d", v)
	}
	p = kernels.NewProgram(1)
	p.On(0).Mark(0)
	r.mustRun(kernels.Script, kernels.Grid(1), r.handle.Addr(), r.words(p.Words()))
	if v := r.gate(0, kernels.GateReady).Load(); v != 1 {
		t.Fatalf("the gate is at %d after the last mark, want 1", v)
	}
}

func TestAPlanThatStartsAtALaterRoundOpensWithThatRound(t *testing.T) {
	for _, round := range []uint64{2, 1 << 31, 1<<31 + 1, 1<<32 - 1} {
		r := newRig(t, alone(0, 5))
		r.start(round)
		r.gate(0, kernels.GateReady).Store(round - 1)
		r.gate(0, kernels.GateWriters).Store((round - 1) * 5)
		p := kernels.NewProgram(5)
		for w := range 5 {
			p.On(w).Mark(0).Wait(0)
		}
		r.mustRun(kernels.Script, kernels.Grid(5), r.handle.Addr(), r.words(p.Words()))
		if v := r.gate(0, kernels.GateReady).Load(); v != round {
			t.Errorf("round %d: the gate is at %d", round, v)
		}
	}
}

func TestForeignMarksAreCountedAndTouchNoGate(t *testing.T) {
	for _, chunk := range []int{0, 1, 4, 5, 1 << 40, -1} {
		r := newRig(t, shape{rank: 1, world: 2, first: 2, own: 2, writers: []int{1, 1, 1, 1, 1}})
		p := kernels.NewProgram(1)
		p.On(0).Mark(chunk)
		r.mustRun(kernels.Script, hip.Grid{Blocks: 1, Threads: 4}, r.handle.Addr(), r.words(p.Words()))
		if n, last := r.faults.Word(kernels.FaultForeign).Load(), r.faults.Word(kernels.FaultLast).Load(); n != 1 || last != uint64(chunk) {
			t.Errorf("the mark of chunk %d is recorded as %d foreign marks, the last of chunk %d", chunk, n, int(last))
		}
		for c := range 5 {
			if r.gate(c, kernels.GateReady).Load() != 0 || r.gate(c, kernels.GateWriters).Load() != 0 {
				t.Errorf("the mark of chunk %d touched the gate of chunk %d", chunk, c)
			}
		}
	}
}

func TestExtraMarksAreCountedAndOpenNothing(t *testing.T) {
	r := newRig(t, alone(0, 2))
	p := kernels.NewProgram(5)
	for w := range 5 {
		p.On(w).Mark(0)
	}
	r.mustRun(kernels.Script, hip.Grid{Blocks: 5, Threads: 2}, r.handle.Addr(), r.words(p.Words()))
	if n := r.faults.Word(kernels.FaultExtra).Load(); n != 3 {
		t.Errorf("%d extra marks are counted, want 3", n)
	}
	if v := r.gate(0, kernels.GateReady).Load(); v != 1 {
		t.Errorf("the gate is at %d, want 1", v)
	}
}
