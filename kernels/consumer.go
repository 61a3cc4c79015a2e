package kernels

import (
	"fmt"

	"github.com/triggeredplans/sluice/hip"
)

// Consumer is the kernel
//
//	consumer(handle, buffer, table, base, errors)
//
// CTA b of B takes the chunks b, b+B, and so on of all ranks. It waits for
// each, compares every byte of its regions with the pattern of
// SeedOf(base, owner, round), and adds what it finds to the error row. The
// table is made by ConsumerTable.
var Consumer = builtin("consumer", consume, "handle", "buffer", "table", "base", "errors")

// ConsumerTable is the table that Consumer takes, from the regions of every
// rank's chunks in order: for each chunk the index of its first region, the
// number of regions, then offset, width, height and pitch of each.
func ConsumerTable(chunks [][]Region) []uint64 {
	table := make([]uint64, 0, 1+5*len(chunks))
	n := 0
	for _, regions := range chunks {
		table = append(table, uint64(n))
		n += len(regions)
	}
	table = append(table, uint64(n))
	for _, regions := range chunks {
		for _, r := range regions {
			table = append(table, uint64(r.Offset), uint64(r.Width), uint64(r.Height), uint64(r.Pitch))
		}
	}
	return table
}

func consume(t *hip.Thread) {
	v := NewView(t, t.Arg(0))
	buffer, base := t.Arg(1), t.Arg(3)
	fail := func(argument, why string, err error) {
		t.Fail(&ArgumentError{Kernel: "consumer", Argument: argument, Why: why, Err: err})
	}
	table, err := openWords(t, t.Arg(2))
	if err != nil {
		fail("table", "it cannot be read", err)
	}
	row, err := openErrorRow(t, t.Arg(4))
	if err != nil {
		fail("errors", "it cannot be written", err)
	}
	for c := t.Block; c < v.Chunks(); c += t.Blocks {
		v.Wait(c)
		seed := SeedOf(base, v.Owner(c), v.Round())
		var ends [2]uint64
		if err := table.read(uint64(c), ends[:]); err != nil {
			fail("table", fmt.Sprintf("chunk %d", c), err)
		}
		if ends[0] > ends[1] || ends[1] > table.n {
			fail("table", fmt.Sprintf("chunk %d has the regions %d up to %d", c, ends[0], ends[1]), nil)
		}
		var wrong uint64
		for i := ends[0]; i < ends[1]; i++ {
			var r [4]uint64
			if err := table.read(uint64(v.Chunks()+1)+4*i, r[:]); err != nil {
				fail("table", fmt.Sprintf("region %d", i), err)
			}
			w, err := openWindow(t, buffer, Region{int64(r[0]), int64(r[1]), int64(r[2]), int64(r[3])})
			if err != nil {
				fail("table", fmt.Sprintf("region %d", i), err)
			}
			wrong += w.check(t.Index, t.Threads, seed)
		}
		row.add(c, wrong)
	}
}
