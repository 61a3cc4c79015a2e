package kernels_test

import (
	"context"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

// patience is how long a test lets something take that takes no time.
const patience = 20 * time.Second

// rig is what a plan gives the kernels of one rank, and nobody else's.
type rig struct {
	t      *testing.T
	dev    hip.Device
	stream hip.Stream

	handle, gates, tables, faults, errors, buffer *hip.Memory
	round                                         uint64
}

// shape is the plan that a rig stands for. Chunk c has writers[c] and belongs
// to the rank if it is one of the own chunks from first on, else to owner.
type shape struct {
	rank, world, first, own, owner int
	writers                        []int
	buffer                         int64 // bytes
}

func newRig(t *testing.T, s shape) *rig {
	t.Helper()
	r := &rig{t: t, dev: hostDevice(t)}
	stream, err := r.dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	r.stream = stream
	t.Cleanup(func() {
		if err := stream.Close(soon(t)); err != nil {
			t.Error(err)
		}
	})
	chunks := len(s.writers)
	r.handle = r.alloc(int64(kernels.HandleWords(chunks)) * 8)
	r.gates = r.alloc(int64(chunks) * kernels.GateRow)
	r.tables = r.alloc(int64(s.world) * 8)
	r.faults = r.alloc(kernels.FaultRow)
	r.errors = r.alloc(kernels.ErrorRow)
	r.buffer = r.alloc(max(s.buffer, 64))
	r.tables.Word(int64(s.rank) * 8).Store(r.gates.Addr())

	words := []uint64{kernels.ABIVersion, uint64(chunks), uint64(s.rank), 0, r.gates.Addr(), uint64(s.world), uint64(s.first), uint64(s.own), r.tables.Addr(), r.faults.Addr(), 0}
	for c, w := range s.writers {
		owner := s.owner
		if c >= s.first && c < s.first+s.own {
			owner = s.rank
		}
		words = append(words, uint64(w), uint64(owner))
	}
	r.handle.StoreWords(0, 8, words)
	r.start(1)
	return r
}

// alone is a rank that is its whole world.
func alone(buffer int64, writers ...int) shape {
	return shape{world: 1, own: len(writers), writers: writers, buffer: buffer}
}

func hostDevice(t testing.TB) hip.Device {
	t.Helper()
	p, err := hip.Open("host")
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// soon is a context that ends after the test's patience.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (r *rig) alloc(n int64) *hip.Memory {
	r.t.Helper()
	m, err := r.dev.Alloc(n)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.Free)
	return m
}

// words allocates memory that holds words.
func (r *rig) words(words []uint64) uint64 {
	r.t.Helper()
	m := r.alloc(int64(len(words)) * 8)
	m.StoreWords(0, 8, words)
	return m.Addr()
}

func (r *rig) start(round uint64) {
	r.round = round
	r.handle.Word(kernels.HandleRound * 8).Store(round)
}

func (r *rig) gate(chunk int, word int64) *hip.Word {
	return r.gates.Word(int64(chunk)*kernels.GateRow + word)
}

// launch does not wait for the kernel.
func (r *rig) launch(k *kernels.Kernel, g hip.Grid, args ...uint64) {
	r.t.Helper()
	l := hip.Launch{Func: &hip.Function{Name: k.Name, Go: k.Go}, Grid: g}
	for _, a := range args {
		l.Args = append(l.Args, hip.U64(a))
	}
	if err := r.stream.Launch(l); err != nil {
		r.t.Fatal(err)
	}
}

// run returns when the kernel has ended, with its error.
func (r *rig) run(k *kernels.Kernel, g hip.Grid, args ...uint64) error {
	r.t.Helper()
	r.launch(k, g, args...)
	return r.stream.Sync(soon(r.t))
}

// mustRun fails the test with the kernel's error.
func (r *rig) mustRun(k *kernels.Kernel, g hip.Grid, args ...uint64) {
	r.t.Helper()
	if err := r.run(k, g, args...); err != nil {
		r.t.Fatal(err)
	}
}

// kernel runs a function on every thread of the grid.
func (r *rig) kernel(g hip.Grid, body func(*hip.Thread)) error {
	r.t.Helper()
	return r.run(&kernels.Kernel{Name: r.t.Name(), Go: body}, g)
}

// opened waits for a chunk's ready word as a copy engine does.
func (r *rig) opened(chunk int) {
	r.t.Helper()
	gate := r.gate(chunk, kernels.GateReady)
	open := func(v uint64) bool { return uint32(v) >= uint32(r.round) }
	if err := hip.NewWaiter().Await(soon(r.t), gate, open, nil); err != nil {
		r.t.Fatalf("the gate of chunk %d is at %d, want round %d: %v", chunk, gate.Load(), r.round, err)
	}
}

// expect fails the test unless every row of the region has the seed's pattern.
func (r *rig) expect(region kernels.Region, seed uint64) {
	r.t.Helper()
	for row := range region.Height {
		at := region.Offset + row*region.Pitch
		if n := kernels.CheckPattern(r.buffer.Bytes(at, region.Width), seed, uint64(at)); n > 0 {
			r.t.Fatalf("round %d: %d of %d bytes at %d are wrong", r.round, n, region.Width, at)
		}
	}
}
