// Command put_quiet copies without a plan: every rank puts its rows to every
// other, to another tensor and offset, whole and as a window of another pitch.
//
// The host's puts are made before their data is: the first waits for a flag,
// which the producer kernel stores when it has written the rows, and each adds
// to a signal on the peer, for which a consumer kernel waits there. Where
// kernels can start copies themselves, one does the same once more. The data is
// different every time, and every byte is checked every time, also those that
// nothing is put to.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/triggeredplans/sluice/internal/example"
	"github.com/triggeredplans/sluice/rank"
)

const (
	name = "put_quiet"
	what = "put every rank's rows to every other rank, and wait until they are there"
)

func main() {
	var p putQuiet
	example.Main(name, what, p.flags, p.run)
}

type putQuiet struct {
	rows, cols int
	node       *rank.Node // nil is the process's
}

// result is what -json prints.
type result struct {
	Example    string `json:"example"`
	Platform   string `json:"platform"`
	Ranks      int    `json:"ranks"`
	Rounds     int    `json:"rounds"`
	Rows       int    `json:"rows"`
	Cols       int    `json:"cols"`
	HostPuts   int    `json:"host_puts_per_round"`
	KernelPuts int    `json:"kernel_puts_per_round"`
	example.Figures
}

func (r *result) Table() [][2]string {
	return append([][2]string{
		{"host puts per round", fmt.Sprint(r.HostPuts)},
		{"kernel puts per round", fmt.Sprint(r.KernelPuts)},
	}, r.Lines("put")...)
}

func (p *putQuiet) flags(fs *flag.FlagSet) {
	example.Count(fs, &p.rows, "rows", 256, 1, 1<<24, "rows that each rank puts")
	example.Count(fs, &p.cols, "cols", 1024, 1, 1<<24, "columns, of 2 bytes each")
}

func (p *putQuiet) run(ctx context.Context, f *example.Flags) (example.Result, error) {
	res := &result{Example: name, Ranks: f.Ranks, Rounds: f.Rounds, Rows: p.rows, Cols: p.cols}
	f.Say("%d ranks, each with %dx%d elements, %d rounds", f.Ranks, p.rows, p.cols, f.Rounds)

	// A rank has its rows, and for each rank a place for them and for a window.
	bytes := int64(p.rows) * (int64(p.cols) + int64(f.Ranks)*int64(p.cols+p.window()+margin)) * elem
	cfg := rank.Config{Ranks: f.Ranks, Platform: f.Platform, Node: p.node, HeapBytes: f.HeapBytes(bytes + 1<<20)}
	err := f.RunWorld(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		return p.rank(ctx, f, r, res)
	})
	if !res.End(err) {
		return nil, err
	}
	return res, err
}

// rank is one rank's part; rank 0 fills in the result.
func (p *putQuiet) rank(ctx context.Context, f *example.Flags, r *rank.Rank, res *result) error {
	e, err := p.newExchange(ctx, r)
	if err != nil {
		return err
	}
	ways := []func(context.Context, uint64) error{e.hostPuts}
	if canPut(r) {
		ways = append(ways, e.kernelPuts)
	}
	if r.ID() == 0 {
		pairs := r.Size() * (r.Size() - 1)
		res.Platform, res.HostPuts, res.KernelPuts = r.World().Platform(), 2*pairs, 2*pairs*(len(ways)-1)
		res.Bytes = int64(p.rows) * int64(p.cols+p.window()) * elem * int64(pairs*len(ways))
		f.Say("%s platform: %d puts by hosts and %d by kernels per round", res.Platform, res.HostPuts, res.KernelPuts)
	}
	var spent time.Duration
	for round := 1; round <= f.Rounds; round++ {
		took := time.Duration(0)
		for _, way := range ways {
			if err := r.Barrier(ctx); err != nil { // everybody has checked what came last
				return err
			}
			began := time.Now()
			if err := e.exchange(ctx, round, way); err != nil {
				return err
			}
			took += time.Since(began)
			if err := e.check(round); err != nil {
				return err
			}
		}
		spent += took
		if r.ID() == 0 {
			f.Detail("round %d: %v", round, took.Round(time.Microsecond))
			f.Progress("round", round, f.Rounds)
		}
	}
	if r.ID() == 0 {
		res.Spent(spent, f.Rounds)
	}
	return r.Barrier(ctx)
}

// window is how many columns of the rows are put as a window.
func (p *putQuiet) window() int { return (p.cols + 1) / 2 }
