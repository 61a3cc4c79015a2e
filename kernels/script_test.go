package kernels_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/kernels"
)

func TestAScriptHandsDataFromOneCTAToAnother(t *testing.T) {
	r := newRig(t, alone(4096, 1))
	flag := r.alloc(64)
	region := kernels.Region{Offset: 64, Width: 48, Height: 20, Pitch: 64}
	for round := uint64(1); round <= 20; round++ {
		p := kernels.NewProgram(2)
		p.On(0).Await(flag.Addr(), round).Check(r.buffer.Addr(), region, round, r.errors.Addr()).Store(flag.Addr()+8, round)
		p.On(1).Spin(round*100).Fill(r.buffer.Addr(), region, round).Store(flag.Addr(), round).Await(flag.Addr()+8, round)
		r.mustRun(kernels.Script, kernels.Waits(hip.Grid{Blocks: 2, Threads: 4}), 0, r.words(p.Words()))
		r.expect(region, round)
		if wrong, checked := r.errors.Word(kernels.ErrorBytes).Load(), r.errors.Word(kernels.ErrorChecked).Load(); wrong != 0 || checked != round {
			t.Fatalf("round %d: %d wrong bytes in %d checks", round, wrong, checked)
		}
	}
}

func TestAScriptsCheckCountsEachWrongByte(t *testing.T) {
	r := newRig(t, alone(4096, 1))
	region := kernels.Region{Offset: 5, Width: 300, Height: 3, Pitch: 1000}
	p := kernels.NewProgram(1)
	p.On(0).Fill(r.buffer.Addr(), region, 1).Check(r.buffer.Addr(), region, 1, r.errors.Addr())
	r.mustRun(kernels.Script, hip.Grid{Blocks: 1, Threads: 1}, 0, r.words(p.Words()))
	r.buffer.Bytes(2005, 1)[0]++
	r.buffer.Bytes(2304, 1)[0]++
	r.buffer.Bytes(2305, 1)[0]++ // outside
	p = kernels.NewProgram(1)
	p.On(0).Check(r.buffer.Addr(), region, 1, r.errors.Addr())
	r.mustRun(kernels.Script, hip.Grid{Blocks: 1, Threads: 4}, 0, r.words(p.Words()))
	if wrong, checked := r.errors.Word(kernels.ErrorBytes).Load(), r.errors.Word(kernels.ErrorChecked).Load(); wrong != 2 || checked != 2 {
		t.Errorf("%d wrong bytes in %d checks, want 2 in 2", wrong, checked)
	}
}

func TestACTAWithoutAListDoesNothing(t *testing.T) {
	r := newRig(t, alone(64, 1))
	p := kernels.NewProgram(2)
	p.On(1).Store(r.buffer.Addr(), 5)
	r.mustRun(kernels.Script, hip.Grid{Blocks: 6, Threads: 2}, 0, r.words(p.Words()))
	if v := r.buffer.Word(0).Load(); v != 5 {
		t.Errorf("the list of CTA 1 stored %d, want 5", v)
	}
}

func TestADelayLastsAtLeastAsLongAsItSays(t *testing.T) {
	r := newRig(t, alone(64, 1))
	p := kernels.NewProgram(1)
	p.On(0).Delay(3 * time.Millisecond).Delay(-time.Hour)
	from := time.Now()
	r.mustRun(kernels.Script, hip.Grid{Blocks: 1, Threads: 2}, 0, r.words(p.Words()))
	if d := time.Since(from); d < 3*time.Millisecond {
		t.Errorf("a delay of 3 ms took %v", d)
	}
}

func TestAScriptEndsWithItsStreamWhateverItDoes(t *testing.T) {
	for name, last := range map[string]func(*kernels.List, uint64){
		"delay": func(l *kernels.List, _ uint64) { l.Delay(time.Hour) },
		"spin":  func(l *kernels.List, _ uint64) { l.Spin(math.MaxUint64) },
		"await": func(l *kernels.List, word uint64) { l.Await(word, 1) },
		"wait":  func(l *kernels.List, _ uint64) { l.Wait(0) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, alone(64, 1))
			p := kernels.NewProgram(1)
			last(p.On(0).Store(r.buffer.Addr(), 1), r.buffer.Addr()+8)
			r.launch(kernels.Script, hip.Grid{Blocks: 1, Threads: 2}, r.handle.Addr(), r.words(p.Words()))
			if err := hip.NewWaiter().Await(soon(t), r.buffer.Word(0), func(v uint64) bool { return v == 1 }, nil); err != nil {
				t.Fatal(err)
			}
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if err := r.stream.Close(over); err != nil {
				t.Fatal(err)
			}
			if err := r.stream.Err(); !errors.Is(err, hip.ErrClosed) {
				t.Errorf("it ends with %v, want hip.ErrClosed", err)
			}
		})
	}
}

func TestAProgramWithoutSenseFailsTheKernel(t *testing.T) {
	page := func(words ...uint64) []uint64 { return append(words, make([]uint64, 512-len(words))...) }
	mark, wait := kernels.NewProgram(1), kernels.NewProgram(1)
	mark.On(0).Mark(0)
	wait.On(0).Wait(0)
	for name, program := range map[string][]uint64{
		"an operation that there is not": page(1, 2, 9),
		"a list outside":                 page(1, 1<<61),
		"a list that wraps":              page(1, math.MaxUint64-3),
		"a list without an end":          page(1, 512-8+1),
		"a fill outside memory":          page(1, 2, 1, 64, 0, 8, 1, 8, 0),
		"a word outside memory":          page(1, 2, 8, 64, 0),
		"an error row outside memory":    page(1, 2, 6, 64, 0, 0, 0, 0, 0, 64),
		"a mark without a handle":        mark.Words(),
		"a wait without a handle":        wait.Words(),
	} {
		r := newRig(t, alone(64, 1))
		err := r.run(kernels.Script, hip.Grid{Blocks: 1, Threads: 2}, 0, r.words(program))
		var bad *kernels.ArgumentError
		var kernel *hip.KernelError
		if !errors.As(err, &bad) || bad.Argument != "program" || !errors.As(err, &kernel) || kernel.Stack != "" {
			t.Errorf("%s: the kernel ends with %v, want an ArgumentError about program", name, err)
		}
	}
	r := newRig(t, alone(64, 1))
	var bad *hip.AddressError
	if err := r.run(kernels.Script, kernels.Grid(1), 0, 12345); !errors.As(err, &bad) {
		t.Errorf("a program outside memory: the kernel ends with %v", err)
	}
}
