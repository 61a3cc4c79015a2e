package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestMachineScripts feeds a plan's machine and compares the states it goes
// through with the transcripts in testdata. Commands take rank=R, which may be
// "all":
//
//	plan ranks=N [round=R]
//	prepare [fails | tears]
//	start, wait [err=TEXT], fault err=TEXT, close
//	next [fails | tears]    the ranks' votes, then the preparation
//	drained
func TestMachineScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/machine", func(t *testing.T, path string) {
		var m *machine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			var who, text string
			d.MaybeScanArgs(t, "rank", &who)
			d.MaybeScanArgs(t, "err", &text)
			var cause error
			if text != "" {
				cause = errors.New(text)
			}
			each := func(do func(r int) error) {
				for r := range m.parts {
					if who == "" || who == "all" || who == fmt.Sprint(r) {
						if err := do(r); err != nil {
							fmt.Fprintf(&b, "rank %d: %v\n", r, err)
						}
					}
				}
			}
			prepare := func() {
				switch {
				case d.HasArg("fails"):
					each(func(r int) error { m.refused(r); return nil })
				case d.HasArg("tears"):
					m.tore(errors.New("doorbell"))
				default:
					m.advance()
				}
			}
			switch d.Cmd {
			case "plan":
				var n int
				first := uint64(1)
				d.ScanArgs(t, "ranks", &n)
				d.MaybeScanArgs(t, "round", &first)
				m = newMachine("p", n, first)
			case "prepare":
				prepare()
			case "start":
				each(func(r int) error {
					err := m.expect(r, "Start", Prepared)
					if err == nil {
						m.start(r)
					}
					return err
				})
			case "wait":
				each(func(r int) error {
					err := m.expect(r, "Wait", Started)
					if err == nil {
						m.waited(r, cause)
					}
					return err
				})
			case "fault":
				each(func(r int) error { m.fail(r, cause); return nil })
			case "next":
				refused := false
				each(func(r int) error {
					err := m.mayAdvance(r)
					refused = refused || err != nil
					return err
				})
				if refused {
					each(func(r int) error { m.refused(r); return nil })
				} else {
					prepare()
				}
			case "close":
				each(func(r int) error {
					if first, open := m.close(r); !first {
						fmt.Fprintf(&b, "rank %d has been there\n", r)
					} else if open > 0 {
						fmt.Fprintf(&b, "rank %d opens its gates for round %d\n", r, open)
					}
					return nil
				})
			case "drained":
				m.drained()
			default:
				t.Fatalf("no command is named %q", d.Cmd)
			}
			fmt.Fprintf(&b, "round %d:", m.round)
			for _, p := range m.parts {
				fmt.Fprintf(&b, " %v", p.state)
			}
			return b.String() + "\n"
		})
	})
}
