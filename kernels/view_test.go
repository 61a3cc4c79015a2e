package kernels_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

func TestAViewTellsWhatItsHandleHolds(t *testing.T) {
	r := newRig(t, shape{rank: 2, world: 4, first: 1, own: 2, owner: 3, writers: []int{5, 6, 7, 8}})
	r.start(9)
	r.tables.Word(3 * 8).Store(4096)
	err := r.kernel(hip.Grid{Blocks: 1, Threads: 2}, func(th *hip.Thread) {
		v := kernels.NewView(th, r.handle.Addr())
		got := []int{v.Rank(), v.World(), int(v.Round()), v.Chunks(), v.First(), v.Own()}
		for c := range v.Chunks() {
			got = append(got, v.Writers(c), v.Owner(c))
		}
		want := []int{2, 4, 9, 4, 1, 2, 5, 3, 6, 2, 7, 2, 8, 3}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("the view tells %v, want %v", got, want)
				break
			}
		}
		if v.PeerGates(2) != r.gates.Addr() || v.PeerGates(3) != 4096 {
			t.Errorf("the gate tables of ranks 2 and 3 are at %#x and %#x", v.PeerGates(2), v.PeerGates(3))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestABadHandleFailsTheKernelAndSaysWhatIsWrong(t *testing.T) {
	cases := []struct {
		field string
		word  int
		value uint64
	}{
		{"ABI version", kernels.HandleVersion, kernels.ABIVersion + 1},
		{"chunks", kernels.HandleChunks, 0},
		{"chunks", kernels.HandleChunks, math.MaxUint64},
		{"address", kernels.HandleChunks, 1 << 30}, // more than its allocation has
		{"world size", kernels.HandleWorld, 0},
		{"world size", kernels.HandleWorld, 1 << 60},
		{"rank", kernels.HandleRank, 2},
		{"round", kernels.HandleRound, 0},
		{"round", kernels.HandleRound, 1 << 32},
		{"first own chunk", kernels.HandleFirst, 4},
		{"own chunks", kernels.HandleOwn, 3},
		{"gate table", kernels.HandleGates, 0},
		{"table of gate tables", kernels.HandleTables, 1 << 63},
		{"fault row", kernels.HandleFaults, math.MaxUint64 - 8},
	}
	for _, c := range cases {
		r := newRig(t, shape{rank: 1, world: 2, first: 1, own: 2, writers: []int{1, 1, 1}})
		r.handle.Word(int64(c.word) * 8).Store(c.value)
		err := r.run(kernels.Script, kernels.Grid(2), r.handle.Addr(), r.words(kernels.NewProgram(2).Words()))
		var bad *kernels.HandleError
		if !errors.As(err, &bad) || bad.Field != c.field {
			t.Errorf("word %d = %#x: the kernel ends with %v, want a HandleError about %s", c.word, c.value, err, c.field)
		}
	}
}

func TestAnAddressThatIsNoHandleFailsTheKernel(t *testing.T) {
	for name, of := range map[string]func(*rig) uint64{
		"null":          func(*rig) uint64 { return 0 },
		"the last byte": func(*rig) uint64 { return math.MaxUint64 },
		"not aligned":   func(r *rig) uint64 { return r.handle.Addr() + 4 },
		"a buffer":      func(r *rig) uint64 { return r.buffer.Addr() },
	} {
		r := newRig(t, alone(4096, 1))
		err := r.run(kernels.Fill, kernels.Grid(1), of(r), r.buffer.Addr(), 0, 8, 1, 8, 0, 0)
		var bad *kernels.HandleError
		if !errors.As(err, &bad) || bad.Addr != of(r) {
			t.Errorf("%s: the kernel ends with %v, want a HandleError", name, err)
		}
	}
}

func TestWhatThePlanDoesNotHaveFailsTheKernel(t *testing.T) {
	for name, use := range map[string]func(*kernels.View, int){
		"Wait":      func(v *kernels.View, i int) { v.Wait(i) },
		"Arrived":   func(v *kernels.View, i int) { v.Arrived(i) },
		"Owner":     func(v *kernels.View, i int) { v.Owner(i) },
		"Writers":   func(v *kernels.View, i int) { v.Writers(i) },
		"PeerGates": func(v *kernels.View, i int) { v.PeerGates(i) },
	} {
		for _, i := range []int{-1, 3, math.MaxInt, math.MinInt} {
			r := newRig(t, shape{world: 3, own: 1, writers: []int{1, 1, 1}})
			err := r.kernel(hip.Grid{Blocks: 2, Threads: 2}, func(th *hip.Thread) {
				v := kernels.NewView(th, r.handle.Addr())
				use(&v, i)
			})
			var bad *kernels.RangeError
			if !errors.As(err, &bad) || bad.Index != i || bad.Limit != 3 {
				t.Errorf("%s(%d) ends the kernel with %v, want a RangeError", name, i, err)
			}
		}
	}
}

func TestTheOwnerLooksAtReadyAndTheOthersAtArrival(t *testing.T) {
	r := newRig(t, shape{rank: 1, world: 2, first: 1, own: 1, writers: []int{1, 1}})
	for _, c := range []struct {
		word    int64
		arrived [2]bool
	}{
		{kernels.GateReady, [2]bool{false, true}},
		{kernels.GateArrival, [2]bool{true, false}},
	} {
		for chunk := range 2 {
			r.gate(chunk, kernels.GateReady).Store(0)
			r.gate(chunk, kernels.GateArrival).Store(0)
			r.gate(chunk, c.word).Store(1)
		}
		err := r.kernel(kernels.Grid(1), func(th *hip.Thread) {
			v := kernels.NewView(th, r.handle.Addr())
			if got := [2]bool{v.Arrived(0), v.Arrived(1)}; got != c.arrived {
				t.Errorf("with word %d of the gates at round 1, chunks have arrived: %v, want %v", c.word, got, c.arrived)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestGatesAreComparedByTheirLow32BitsUnsigned(t *testing.T) {
	r := newRig(t, alone(0, 1))
	for _, c := range []struct {
		gate, round uint64
		open        bool
	}{
		{0, 1, false}, {1, 1, true}, {2, 1, true}, {1, 2, false},
		{1 << 31, 1<<31 + 1, false}, {1<<31 + 1, 1<<31 + 1, true},
		{0, 1<<31 + 2, false}, {1<<32 - 1, 1, true},
		{1 << 32, 1, false}, {7<<32 | 3, 3, true},
	} {
		r.start(c.round)
		r.gate(0, kernels.GateReady).Store(c.gate)
		err := r.kernel(kernels.Grid(1), func(th *hip.Thread) {
			v := kernels.NewView(th, r.handle.Addr())
			if v.Arrived(0) != c.open {
				t.Errorf("a gate at %#x is open for round %#x: %v, want %v", c.gate, c.round, !c.open, c.open)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWaitEndsWhenItsChunkArrives(t *testing.T) {
	r := newRig(t, shape{world: 2, own: 1, owner: 1, writers: []int{1, 1}})
	waiting, after := new(hip.Word), new(hip.Word)
	for round := uint64(1); round <= 20; round++ {
		r.start(round)
		polls := make([]int, 6)
		r.launch(&kernels.Kernel{Name: "waits", Go: func(th *hip.Thread) {
			v := kernels.NewView(th, r.handle.Addr())
			waiting.Add(1)
			polls[th.Block*3+th.Index] = v.Wait(1)
			after.Add(1)
		}}, kernels.Waits(hip.Grid{Blocks: 2, Threads: 3}))
		all := func(v uint64) bool { return v == 6*round }
		if err := hip.NewWaiter().Await(soon(t), waiting, all, nil); err != nil {
			t.Fatal(err)
		}
		if n := after.Load(); n != 6*(round-1) {
			t.Fatalf("round %d: %d threads went on before the arrival", round, n-6*(round-1))
		}
		r.gate(1, kernels.GateArrival).Add(1)
		if err := r.stream.Sync(soon(t)); err != nil {
			t.Fatal(err)
		}
		for b := range 2 {
			if p := polls[b*3 : b*3+3]; p[0] < 1 || p[1] != p[0] || p[2] != p[0] {
				t.Fatalf("the threads of a CTA say that they looked %v times", p)
			}
		}
	}
}

func TestAWaitThatMustEndNamesItsChunkItsRoundAndWhatItSaw(t *testing.T) {
	r := newRig(t, shape{world: 2, own: 1, owner: 1, writers: []int{1, 1}})
	r.start(7)
	r.gate(1, kernels.GateArrival).Store(5)
	p := kernels.NewProgram(1)
	p.On(0).Wait(1)
	r.launch(kernels.Script, kernels.Waits(hip.Grid{Blocks: 1, Threads: 4}), r.handle.Addr(), r.words(p.Words()))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.stream.Close(over); err != nil {
		t.Fatal(err)
	}
	err := r.stream.Err()
	var bad *kernels.WaitError
	if !errors.As(err, &bad) || bad.Chunk != 1 || bad.Owner != 1 || bad.Round != 7 || bad.Seen != 5 || !errors.Is(err, hip.ErrClosed) {
		t.Fatalf("the kernel ends with %v (%+v)", err, bad)
	}
	for _, word := range []string{"chunk 1 of rank 1", "at round 5", "want 7"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestAllThreadsOfACTAGetTheSameAnswerWhileGatesOpen(t *testing.T) {
	const chunks, threads = 200, 4
	writers := make([]int, chunks)
	for c := range writers {
		writers[c] = 1
	}
	r := newRig(t, shape{world: 2, writers: writers})
	var answers [threads][chunks]bool
	r.launch(&kernels.Kernel{Name: "asks", Go: func(th *hip.Thread) {
		v := kernels.NewView(th, r.handle.Addr())
		for c := range chunks {
			answers[th.Index][c] = v.Arrived(c)
		}
	}}, hip.Grid{Blocks: 1, Threads: threads})
	for c := chunks - 1; c >= 0; c-- { // the other way round: they meet
		r.gate(c, kernels.GateArrival).Store(1)
	}
	if err := r.stream.Sync(soon(t)); err != nil {
		t.Fatal(err)
	}
	for i := range threads {
		if answers[i] != answers[0] {
			t.Fatalf("threads 0 and %d were told different things", i)
		}
	}
}

func TestMarkingAndLookingAllocateNothing(t *testing.T) {
	r := newRig(t, alone(0, 1))
	r.gate(0, kernels.GateReady).Store(1)
	err := r.kernel(kernels.Grid(1), func(th *hip.Thread) {
		v := kernels.NewView(th, r.handle.Addr())
		n := testing.AllocsPerRun(100, func() {
			v.MarkReady(0)
			if !v.Arrived(0) {
				t.Error("the chunk is not here")
			}
			v.Wait(0)
		})
		if n != 0 {
			t.Errorf("a mark, a look and a wait allocate %v times", n)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A kernel may be given any words for a handle: it fails, or it marks and looks
// at what is registered memory, and the process goes on.
func FuzzView(f *testing.F) {
	f.Add([]byte{}, 0, uint64(0))
	f.Add([]byte{kernels.HandleChunks, 255, 255, 255, 255}, 1, uint64(0))
	f.Add([]byte{kernels.HandleGates, 0, 0, 0, 0}, 0, uint64(3))
	f.Add([]byte{kernels.HandleOwn, 2, 0, 0, 0, kernels.HandleFirst, 1, 0, 0, 128}, -1, uint64(8))
	f.Fuzz(func(t *testing.T, changes []byte, chunk int, off uint64) {
		r := newRig(t, shape{rank: 1, world: 2, first: 1, own: 2, writers: []int{1, 1, 1}})
		for ; len(changes) >= 5; changes = changes[5:] {
			word := r.handle.Word(int64(changes[0]) % (r.handle.Size() / 8) * 8)
			v := uint64(changes[1]) | uint64(changes[2])<<8 | uint64(changes[3])<<32 | uint64(changes[4])<<56
			if changes[0]&128 != 0 {
				v += word.Load() // near what was right
			}
			word.Store(v)
		}
		err := r.kernel(hip.Grid{Blocks: 2, Threads: 2}, func(th *hip.Thread) {
			v := kernels.NewView(th, r.handle.Addr()+off%128)
			v.MarkReady(chunk)
			v.PeerGates(v.Rank())
			v.Owner(chunk)
			v.Arrived(chunk)
		})
		var kernel *hip.KernelError
		if err != nil && (!errors.As(err, &kernel) || kernel.Stack != "") {
			t.Fatalf("%v\n%s", err, kernel.Stack)
		}
	})
}
