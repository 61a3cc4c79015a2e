package kernels

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/triggeredplans/sluice/hip"
)

// Script is the kernel
//
//	script(handle, program)
//
// Each CTA executes its list of the program, made with NewProgram; a CTA
// without a list does nothing. The handle may be 0 if nothing is marked or
// waited for by chunk.
var Script = builtin("script", runScript, "handle", "program")

func runScript(t *hip.Thread) {
	s := script{t: t}
	program, err := openWords(t, t.Arg(1))
	if err != nil {
		s.fail("it cannot be read", err)
	}
	var head [1]uint64
	if err := program.read(0, head[:]); err != nil {
		s.fail("its head", err)
	}
	if uint64(t.Block) >= head[0] {
		return
	}
	if err := program.read(1+uint64(t.Block), head[:]); err != nil {
		s.fail(fmt.Sprintf("the start of list %d", t.Block), err)
	}
	if handle := t.Arg(0); handle != 0 {
		s.view, s.viewed = NewView(t, handle), true
	}
	for at := head[0]; ; at += opWords {
		s.at = at
		if err := program.read(at, s.row[:]); err != nil {
			s.fail("the list has no end", err)
		}
		if s.row[0] == opEnd {
			return
		}
		s.step()
	}
}

// script is one thread's execution of its CTA's list.
type script struct {
	t      *hip.Thread
	view   View
	viewed bool
	at     uint64          // index of the row in the program
	row    [opWords]uint64 // the operation and its operands
}

func (s *script) step() {
	a := s.row[1:]
	switch s.row[0] {
	case opFill:
		s.window().fill(s.t.Index, s.t.Threads, a[5])
	case opMark:
		s.needView()
		s.view.MarkReady(int(a[0]))
	case opWait:
		s.needView()
		s.view.Wait(int(a[0]))
	case opDelay:
		s.delay(a[0])
	case opSpin:
		s.spin(a[0])
	case opCheck:
		w := s.window()
		row, err := openErrorRow(s.t, a[6])
		if err != nil {
			s.fail("its error row", err)
		}
		row.add(-1, w.check(s.t.Index, s.t.Threads, a[5]))
	case opAwait:
		s.await(s.word(a[0]), a[1])
	case opStore:
		w := s.word(a[0])
		s.t.Barrier()
		if s.t.Index == 0 {
			w.Store(a[1])
		}
	default:
		s.fail(fmt.Sprintf("there are the operations 0 to %d", opCount-1), nil)
	}
}

func (s *script) window() window {
	a := s.row[1:]
	w, err := openWindow(s.t, a[0], Region{int64(a[1]), int64(a[2]), int64(a[3]), int64(a[4])})
	if err != nil {
		s.fail("its region", err)
	}
	return w
}

func (s *script) word(addr uint64) *hip.Word {
	w, err := openWords(s.t, addr)
	if err != nil {
		s.fail("its word", err)
	}
	return w.m.Word(w.off)
}

func (s *script) needView() {
	if !s.viewed {
		s.fail("it needs a handle, and the kernel was launched with 0", nil)
	}
}

// delay gives way to others meanwhile. It has no barrier: threads of a CTA
// stay as far apart as they were.
func (s *script) delay(ns uint64) {
	timer := time.NewTimer(time.Duration(min(ns, math.MaxInt64)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
		s.fail("the kernel must end", context.Cause(s.t.Context()))
	}
}

// spin keeps the thread busy, for as long as the kernel may run.
func (s *script) spin(n uint64) {
	const slice = 1 << 16
	x := uint64(1)
	for ; n > 0; n -= min(n, slice) {
		x = mix(x, min(n, slice))
		if err := context.Cause(s.t.Context()); err != nil {
			s.fail("the kernel must end", err)
		}
	}
}

// mix is not inlined, so its loop is never found to have no effect.
//
//go:noinline
func mix(x, n uint64) uint64 {
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func (s *script) await(w *hip.Word, value uint64) {
	if s.t.Index == 0 {
		reached := func(v uint64) bool { return uint32(v) >= uint32(value) }
		if err := s.t.Await(w, reached); err != nil {
			s.fail(fmt.Sprintf("the word is %d, want %d", w.Load(), value), err)
		}
	}
	s.t.Barrier()
}

func (s *script) fail(why string, err error) {
	if s.at > 0 {
		why = fmt.Sprintf("operation %d at word %d: %s", s.row[0], s.at, why)
	}
	s.t.Fail(&ArgumentError{Kernel: "script", Argument: "program", Why: why, Err: err})
}
