// Command sdma_probe opens the queue between every pair of devices and sends
// over each a fence, a linear copy, a window and a triggered chunk, checking
// every byte. What it prints is a report of the machine: which engine carries
// each pair, by which way its queue was made, how long each thing took, and what
// did not work. It goes on past what fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/example"
)

const (
	name = "sdma_probe"
	what = "try the copy engines between every pair of devices, and report"
)

func main() {
	var p prober
	example.Main(name, what, p.flags, p.run)
}

// prober tries every pair.
type prober struct {
	bytes  int
	rounds int

	platform hip.Platform
	node     *copyengine.Node
	ends     []*end
}

// end is a place that copies go from and to.
type end struct {
	dev    hip.Device
	at     copyengine.Endpoint
	memory *hip.Memory
}

func (p *prober) flags(fs *flag.FlagSet) {
	example.Count(fs, &p.bytes, "bytes", 64<<10, 1<<10, 64<<20, "bytes of each copy")
}

func (p *prober) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	p.rounds = f.Rounds
	if err := p.open(f); err != nil {
		return nil, err
	}
	defer p.close()
	r := newReport(p)
	for i, from := range p.ends {
		for j, to := range p.ends {
			if i != j {
				r.Pairs = append(r.Pairs, p.try(ctx, from, to))
				f.Progress("pairs", len(r.Pairs), len(p.ends)*(len(p.ends)-1))
			}
		}
	}
	if bad := r.failed(); bad > 0 {
		return r, fmt.Errorf("%d of %d pairs do not work", bad, len(r.Pairs))
	}
	return r, ctx.Err()
}

// open finds the devices and gives each memory.
func (p *prober) open(f *example.Flags) (err error) {
	if p.platform, err = hip.Open(f.Platform); err != nil {
		return err
	}
	if p.platform.Devices() == 0 {
		return errors.New("the platform finds no device here")
	}
	if p.node, err = copyengine.NewNode(copyengine.Config{}); err != nil {
		return err
	}
	for i := range f.Ranks {
		e := &end{at: copyengine.Endpoint{Platform: p.platform.Name(), Device: i % p.platform.Devices(), Slot: i / p.platform.Devices()}}
		if e.dev, err = p.platform.Device(e.at.Device); err != nil {
			p.close()
			return err
		}
		if e.memory, err = e.dev.Alloc(p.room()); err != nil {
			p.close()
			return err
		}
		p.ends = append(p.ends, e)
	}
	return nil
}

func (p *prober) close() {
	for _, e := range p.ends {
		e.memory.Free()
	}
}
