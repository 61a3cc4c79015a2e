//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/handcuda"
	"github.com/triggeredplans/sluice/kernels"
)

// lane is a queue from a device's memory to pinned memory of the host, a stream
// of driver calls made by hand beside it, and kernels that trigger both.
type lane struct {
	tb       testing.TB
	dev      hip.CopyDevice
	node     *copyengine.Node
	queue    *copyengine.Queue
	hand     *handcuda.Stream
	stream   hip.Stream
	builtin  map[string]*hip.Function
	src, dst *hip.Memory // data, and at its end a page of words for each chunk
	bytes    int64       // of data
	round    uint64
}

// wordBytes is the distance of words that chunks wait for or write.
const wordBytes = 64

func newLane(tb testing.TB, bytes int64, chunks int) *lane {
	l := &lane{tb: tb, dev: device(tb), bytes: bytes}
	var err error
	check := func(e error) {
		tb.Helper()
		if e != nil {
			tb.Fatal(e)
		}
	}
	l.src, err = l.dev.Alloc(bytes + int64(chunks)*wordBytes + 64<<20)
	check(err)
	l.dst, err = l.dev.AllocHost(bytes + int64(chunks)*wordBytes)
	check(err)
	l.builtin, err = kernels.LoadBuiltin(l.dev)
	check(err)
	l.stream, err = l.dev.NewStream()
	check(err)
	l.hand, err = handcuda.Open(library(), 0)
	check(err)
	l.node, err = copyengine.NewNode(copyengine.Config{})
	check(err)
	from := copyengine.Endpoint{Platform: "nvidia", Memory: string(hip.DeviceMemory)}
	to := copyengine.Endpoint{Platform: "nvidia", Memory: string(hip.HostMemory)}
	l.queue, err = l.node.Acquire(context.Background(), l.dev, from, to)
	check(err)
	tb.Cleanup(func() {
		l.node.Release(l.queue)
		check(l.stream.Close(context.Background()))
		l.src.Free()
		l.dst.Free()
	})
	return l
}

func (l *lane) check(err error) {
	l.tb.Helper()
	if err != nil {
		l.tb.Fatal(err)
	}
}

// gate is the address of a chunk's gate in the device's memory, signal that of
// the word at the host which tells of its arrival.
func (l *lane) gate(c int) uint64   { return l.src.Addr() + uint64(l.bytes) + uint64(c)*wordBytes }
func (l *lane) signal(c int) uint64 { return l.dst.Addr() + uint64(l.bytes) + uint64(c)*wordBytes }

func (l *lane) arrived(c int) *hip.Word { return l.dst.Word(l.bytes + int64(c)*wordBytes) }

// move is a copy to the same place on the other side.
type move struct{ off, width, rows, pitch int64 }

// chains are the same chunks for the queue and for the hand.
func (l *lane) chains(chunks [][]move) (copyengine.Program, *handcuda.Chain) {
	var ours copyengine.Chain
	var hand []handcuda.Chunk
	for c, moves := range chunks {
		step := copyengine.Step{Gate: l.gate(c), Signal: l.signal(c), Rounds: true}
		ch := handcuda.Chunk{Gate: l.gate(c), Signal: l.signal(c)}
		for _, m := range moves {
			src, dst := l.src.Addr()+uint64(m.off), l.dst.Addr()+uint64(m.off)
			step.Copies = append(step.Copies, copyengine.Copy{Src: src, Dst: dst, Width: m.width, Height: m.rows, SrcPitch: m.pitch, DstPitch: m.pitch})
			ch.Copies = append(ch.Copies, handcuda.Copy{Src: src, Dst: dst, Width: int(m.width), Rows: int(m.rows), Pitch: int(m.pitch)})
		}
		ours, hand = append(ours, step), append(hand, ch)
	}
	p, err := l.queue.Compile(ours)
	l.check(err)
	return p, handcuda.NewChain(hand)
}

// submit puts the next round on one of the two and says what that cost the
// host.
func (l *lane) submit(p copyengine.Program, h *handcuda.Chain) time.Duration {
	l.tb.Helper()
	l.round++
	if p == nil {
		d, err := l.hand.Submit(h, uint32(l.round))
		l.check(err)
		return d
	}
	p.SetRound(uint32(l.round))
	items := []copyengine.Item{{Queue: l.queue, Program: p, Owner: &copyengine.Owner{World: "benchmark", Plan: "ours"}}}
	start := time.Now()
	_, err := copyengine.Prepare(items, l.round)
	d := time.Since(start)
	l.check(err)
	return d
}

// open opens all gates from the host.
func (l *lane) open(chunks int) {
	l.tb.Helper()
	rounds := make([]uint64, chunks)
	for i := range rounds {
		rounds[i] = l.round
	}
	l.check(l.src.StoreWords(l.bytes, wordBytes, rounds))
}

// drain waits until the last chunk of the round is there and both streams have
// nothing left to do.
func (l *lane) drain(chunks int) {
	l.tb.Helper()
	until := time.Now().Add(patience)
	for l.arrived(chunks-1).Load() < l.round {
		if time.Now().After(until) {
			l.tb.Fatal("the chunks do not arrive")
		}
	}
	for {
		idle, err := l.hand.Idle()
		l.check(err)
		if s := l.queue.Snapshot(); idle && s.Held == 0 {
			return
		}
		runtime.Gosched()
	}
}

// launch runs a kernel and says how long it took, seen from the host without a
// pause.
func (l *lane) launch(f string, grid hip.Grid, args ...hip.Arg) time.Duration {
	l.tb.Helper()
	start := time.Now()
	l.check(l.stream.Launch(hip.Launch{Func: l.builtin[f], Grid: grid, Args: args}))
	for !l.stream.Idle() {
	}
	d := time.Since(start)
	l.check(l.stream.Err())
	return d
}

// program puts a script behind the gates in the device's memory.
func (l *lane) program(p *kernels.Program) hip.Arg {
	l.tb.Helper()
	off := l.src.Size() - 64<<20
	l.check(l.src.StoreWords(off, 8, p.Words()))
	return hip.U64(l.src.Addr() + uint64(off))
}

func median(ds []time.Duration) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[len(ds)/2]
}

// spread is the middle half of the values.
func spread(ds []time.Duration) string {
	ds = slices.Sorted(slices.Values(ds))
	return fmt.Sprintf("%v to %v", ds[len(ds)/4], ds[len(ds)*3/4])
}

const repeats = 41

// A kernel opens the gates of chunks of 4 KiB, each when the one before has
// arrived, at the host. The same for the queue's chain and one made by hand,
// taking turns.
func TestFigureTriggerToArrival(t *testing.T) {
	figuresOn(t)
	const chunks = 160
	for _, size := range []int64{4 << 10, 64 << 10, 1 << 20} {
		l := newLane(t, chunks*size, chunks)
		var plan [][]move
		for c := range chunks {
			plan = append(plan, []move{{int64(c) * size, size, 1, size}})
		}
		ours, hand := l.chains(plan)
		var took [2][]time.Duration
		for range repeats {
			for i, p := range []copyengine.Program{ours, nil} {
				l.submit(p, hand)
				prog := kernels.NewProgram(1)
				for c := range chunks {
					prog.On(0).Store(l.gate(c), l.round).Await(l.signal(c), l.round)
				}
				took[i] = append(took[i], l.launch("script", hip.Grid{Blocks: 1, Threads: 32}, hip.U64(0), l.program(prog))/chunks)
				l.drain(chunks)
			}
		}
		a, b := median(took[0]), median(took[1])
		t.Logf("trigger to arrival, %d KiB device to host: %v (%s), by hand %v (%s): ratio %.3f", size>>10, a, spread(took[0]), b, spread(took[1]), float64(a)/float64(b))
		if size == 4<<10 && float64(a) > 1.10*float64(b) {
			t.Errorf("%v is more than 1.10 times the %v of a chain by hand", a, b)
		}
	}
}

// What a round costs the host, beside one call for each copy.
func TestFigureHostTimePerRound(t *testing.T) {
	figuresOn(t)
	even := func(n int, m move, step int64) (ms []move) {
		for i := range n {
			k := m
			k.off += int64(i) * step
			ms = append(ms, k)
		}
		return ms
	}
	uneven := func(n int, width int64) (ms []move) {
		at := int64(0)
		for i := range n {
			ms = append(ms, move{at, width, 1, width})
			at += width * int64(2+i%3)
		}
		return ms
	}
	for _, c := range []struct {
		name  string
		moves []move
		most  float64
	}{
		{"512 linear copies of 4 KiB, unequally spaced", uneven(512, 4096), 0.6},
		{"512 linear copies of 4 KiB, equally spaced", even(512, move{0, 4096, 1, 4096}, 8192), 0.6},
		{"64 linear copies of 4 KiB, unequally spaced", uneven(64, 4096), 0.9},
		{"256 windows of 16 rows of 256 B, one below the other", even(256, move{0, 256, 16, 2048}, 16*2048), 0.05},
		{"1 linear copy of 4 KiB", uneven(1, 4096), math.Inf(1)},
	} {
		l := newLane(t, 16<<20, 1)
		ours, hand := l.chains([][]move{c.moves})
		var took [2][]time.Duration
		for range repeats {
			for i, p := range []copyengine.Program{ours, nil} {
				took[i] = append(took[i], l.submit(p, hand))
				l.open(1)
				l.drain(1)
			}
		}
		a, b := median(took[0]), median(took[1])
		t.Logf("host time per round, %s: %v (%s), by hand %v (%s): ratio %.3f", c.name, a, spread(took[0]), b, spread(took[1]), float64(a)/float64(b))
		if float64(a) > c.most*float64(b) {
			t.Errorf("%s: more than %.2f times the calls by hand", c.name, c.most)
		}
	}
}

// What reading a gate table costs, and the round trip of the words.
func TestFigureReadingGates(t *testing.T) {
	figuresOn(t)
	l := newLane(t, 1<<20, 1)
	for _, rows := range []int{1, 64, 1024} {
		words := make([]uint64, 8*rows)
		var took []time.Duration
		for range 200 {
			start := time.Now()
			l.check(l.src.LoadWords(0, 8, words))
			took = append(took, time.Since(start))
		}
		t.Logf("reading %d gate rows of a device: %v (%s)", rows, median(took), spread(took))
	}
	var took []time.Duration
	for range 200 {
		start := time.Now()
		l.check(l.src.StoreWord(0, 1))
		took = append(took, time.Since(start))
	}
	t.Logf("writing a word of a device: %v (%s)", median(took), spread(took))
}
