package exampletest

import (
	"sync/atomic"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/rank"
)

// Spoiled is a Node on which one copy goes wrong: spoil changes the nth of those
// that fit, with from and to the devices it is between.
func Spoiled(t *testing.T, nth int64, fits func(from, to int, p *sdma.Packet) bool, spoil func(p *sdma.Packet)) *rank.Node {
	t.Helper()
	var copies atomic.Int64
	n, err := rank.NewNode(rank.NodeConfig{
		RingBytes: 64 << 10,
		Intercept: func(from, to copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
			isCopy := p.Op == sdma.OpCopyLinear || p.Op == sdma.OpCopyWindow
			if isCopy && fits(from.Device, to.Device, p) && copies.Add(1) == nth {
				spoil(p)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Stale leaves at a copy's destination what is there.
func Stale(p *sdma.Packet) { p.Copy.Src, p.Copy.SrcPitch = p.Copy.Dst, p.Copy.DstPitch }
