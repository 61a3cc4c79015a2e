package rank

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

type named string

func (n named) String() string { return string(n) }

// TestRendezvousScripts feeds the rendezvous's core with events and compares
// the verdicts with the transcripts in testdata. Nothing in it waits:
//
//	world ranks=N
//	call rank=R op=NAME [on=THING] [err=TEXT] [decide=TEXT] [closing=THING]
//	close rank=R on=THING
//	withdraw rank=R
//	leave rank=R
func TestRendezvousScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/rendezvous", func(t *testing.T, path string) {
		var v *rendezvous
		closings := map[string]*Closing{}
		closing := func(name string) *Closing {
			if closings[name] == nil {
				closings[name] = NewClosing(named(name), len(v.ranks))
			}
			return closings[name]
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var rank int
			var op, on, text, bad, within string
			for _, a := range []struct {
				key string
				to  any
			}{{"rank", &rank}, {"op", &op}, {"on", &on}, {"err", &text}, {"decide", &bad}, {"closing", &within}} {
				d.MaybeScanArgs(t, a.key, a.to)
			}
			var b strings.Builder
			switch d.Cmd {
			case "world":
				var n int
				d.ScanArgs(t, "ranks", &n)
				v = newRendezvous(n)
				clear(closings)
			case "call":
				c := &Call{Op: op}
				if on != "" {
					c.On = named(on)
				}
				if text != "" {
					c.Err = errors.New(text)
				}
				if within != "" {
					c.Closing = closing(within)
				}
				c.Decide = func([]*Call) error {
					fmt.Fprintf(&b, "rank %d decides\n", rank)
					if bad != "" {
						return errors.New(bad)
					}
					return nil
				}
				g, last, err := v.arrive(rank, c)
				switch {
				case g == nil:
					fmt.Fprintf(&b, "rank %d: %v\n", rank, err)
				case last:
					for r := range v.ranks { // whoever comes last decides
						g.calls[r].Decide = c.Decide
					}
					v.settle(g, decide(g.calls))
				}
			case "close":
				if err, waits := v.come(rank, closing(on)); !waits {
					fmt.Fprintf(&b, "rank %d: %v\n", rank, err)
				}
			case "withdraw":
				s := &v.ranks[rank]
				if s.gen != nil {
					v.fail(s.gen, &WithdrawnError{Rank: rank, Call: s.gen.calls[rank].String(), Err: errors.New("deadline")})
				} else if s.closing != nil {
					v.release(rank, errors.New("stopped waiting"))
				}
			case "leave":
				v.leave(rank, ErrReturned)
			default:
				t.Fatalf("no command is named %q", d.Cmd)
			}
			for r := range v.ranks {
				s := &v.ranks[r]
				select {
				case <-s.wake:
					fmt.Fprintf(&b, "rank %d: %v\n", r, s.verdict)
				default:
					if s.gen != nil {
						fmt.Fprintf(&b, "rank %d waits\n", r)
					} else if s.closing != nil {
						fmt.Fprintf(&b, "rank %d waits in Close of %v\n", r, s.closing.On)
					}
				}
			}
			return strings.ReplaceAll(b.String(), "<nil>", "ok")
		})
	})
}
