package copyengine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestLedgerScripts feeds a queue's ledger and compares what it holds with the
// transcripts in testdata:
//
//	queue prepared=N puts=N [batched=N]
//	prepare plan=P [world=W] cost=N [batched=N]
//	start plan=P, flush plan=P, remove plan=P
//	put cost=N [batched=N] [flag]
//	pass to=N
func TestLedgerScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/ledger", func(t *testing.T, path string) {
		var l ledger
		var end uint64
		owners := map[string]*Owner{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var cost, batched, to int64
			plan, world := "", "w1"
			d.MaybeScanArgs(t, "plan", &plan)
			d.MaybeScanArgs(t, "world", &world)
			d.MaybeScanArgs(t, "cost", &cost)
			d.MaybeScanArgs(t, "batched", &batched)
			d.MaybeScanArgs(t, "to", &to)
			if owners[plan] == nil {
				owners[plan] = &Owner{World: world, Plan: plan}
			}
			o := owners[plan]
			var b strings.Builder
			say := func(err error) {
				if err != nil {
					fmt.Fprintf(&b, "error: %v\n", err)
				}
			}
			switch d.Cmd {
			case "queue":
				l, end = ledger{name: "a→b", limits: Limits{Unit: "bytes"}}, 0
				clear(owners)
				d.ScanArgs(t, "prepared", &l.limits.Prepared)
				d.ScanArgs(t, "puts", &l.limits.Puts)
				d.MaybeScanArgs(t, "batched", &l.limits.Batched)
			case "prepare":
				if err := l.admit(load{cost, batched}); err != nil {
					say(err)
					break
				}
				end += uint64(cost)
				l.push(o, 1, load{cost, batched}, end)
			case "start":
				if e := l.before(o, Started); e != nil {
					say(&OrderError{Queue: l.name, First: e.holder()})
					break
				}
				l.find(o).stage = Started
			case "flush":
				l.find(o).stage = Flushed
			case "remove":
				l.remove(o)
			case "put":
				if err := l.admitPut(load{cost, batched}); err != nil {
					say(err)
					break
				}
				end += uint64(cost)
				var flag func()
				if d.HasArg("flag") {
					flag = func() {}
				}
				l.pushPut(Put{World: world, Flag: flag}, load{cost, batched}, end)
			case "quiet":
				say(l.exclude("Quiet"))
			case "pass":
				l.advance(uint64(to))
			default:
				t.Fatalf("no command is named %q", d.Cmd)
			}
			fmt.Fprintf(&b, "held %d, puts %d, high %d:", l.held.cost, l.putHeld.cost, l.high)
			for i := range l.entries {
				e := &l.entries[i]
				fmt.Fprintf(&b, " %s(%s)", e.owner.Plan, [...]string{"prepared", "started", "flushed"}[e.stage])
				if h := l.before(e.owner, Flushed); h != nil {
					fmt.Fprintf(&b, " behind %s", h.owner.Plan)
				}
			}
			return b.String() + "\n"
		})
	})
}
