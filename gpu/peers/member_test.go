//go:build cgo && linux

package peers

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/handcuda"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
)

// team is a world of one rank for each GPU, which measure together.
type team struct {
	testing.TB
	n     int
	hands [][]*handcuda.Stream // of each rank, to each peer

	met  atomic.Int64
	mu   sync.Mutex
	took map[string][][]time.Duration // of what was measured: of each rank, in each turn
}

// hands are streams made by hand, for every pair of devices. They are made
// once, before anything waits.
var hands = sync.OnceValues(func() (all [][]*handcuda.Stream, err error) {
	p, err := hip.Open("nvidia")
	if err != nil {
		return nil, err
	}
	for d := range p.Devices() {
		if _, err := p.Device(d); err != nil {
			return nil, err
		}
		row := make([]*handcuda.Stream, p.Devices())
		for peer := range after(d, len(row)) {
			if row[peer], err = handcuda.Open(os.Getenv(hip.CUDASetting), d); err != nil {
				return nil, err
			}
		}
		all = append(all, row)
	}
	return all, nil
})

// after are the others of n ranks in the order in which a rank sends to them:
// the next one first, so that no two ranks begin with the same.
func after(rank, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 1; i < n && yield((rank+i)%n); i++ {
		}
	}
}

func newTeam(t testing.TB) *team {
	t.Helper()
	n := devices(t)
	h, err := hands()
	if err != nil {
		t.Fatal(err)
	}
	return &team{TB: t, n: n, hands: h, took: map[string][][]time.Duration{}}
}

// run runs body on every rank of a world with so much heap.
func (tm *team) run(heapBytes int64, body func(ctx context.Context, m *member) error) {
	tm.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	node, err := rank.NewNode(rank.NodeConfig{})
	if err != nil {
		tm.Fatal(err)
	}
	cfg := rank.Config{Ranks: tm.n, Platform: "nvidia", Node: node, HeapBytes: heapBytes + 64<<20}
	err = rank.Run(ctx, cfg, func(ctx context.Context, r *rank.Rank) error {
		m := &member{Rank: r, team: tm}
		if err := m.begin(ctx); err != nil {
			return err
		}
		defer m.bell.Free()
		return body(ctx, m)
	})
	if err != nil {
		tm.Fatal(err)
	}
}

// member is a rank that measures.
type member struct {
	*rank.Rank
	team   *team
	script *heap.Tensor
	errors *heap.Tensor // what checks find
	bell   *hip.Memory  // a word of the host's that kernels write
	rung   uint64       // what the word gets next
	checks uint64       // so far
	meets  int64        // so far
}

const scriptWords = 1 << 18

func (m *member) begin(ctx context.Context) (err error) {
	if m.script, err = m.Zeros(ctx, heap.Uint64, scriptWords); err != nil {
		return err
	}
	if m.errors, err = m.Zeros(ctx, heap.Uint64, 8); err != nil {
		return err
	}
	m.bell, err = m.Device().AllocHost(4096)
	return err
}

// base is the address of a tensor on a rank.
func base(t *heap.Tensor, rank int) uint64 { return t.At(rank).Addr() }

// put writes a program where the script kernel reads it.
func (m *member) put(p *kernels.Program) error {
	words := p.Words()
	if len(words) > scriptWords {
		return fmt.Errorf("a program of %d words has no room", len(words))
	}
	return heap.Write(m.script.Rows(0, len(words)), words)
}

// do runs a program and waits for its end.
func (m *member) do(ctx context.Context, p *kernels.Program, ctas int) error {
	if err := m.put(p); err != nil {
		return err
	}
	if err := m.Launch(kernels.Script, hip.Grid{Blocks: ctas}, 0, m.script); err != nil {
		return err
	}
	return m.Sync(ctx)
}

// ring is the operation that tells the host.
func (m *member) ring(l *kernels.List) {
	m.rung++
	l.Store(m.bell.Addr(), m.rung)
}

// spin waits, without a pause, until done.
func spin(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !real {
			runtime.Gosched()
		}
	}
}

// heard waits for the ring.
func (m *member) heard(ctx context.Context) error {
	if !real { // whose devices need the processors
		return hip.NewWaiter().Await(ctx, m.bell.Word(0), func(v uint64) bool { return v >= m.rung }, m.KernelErr)
	}
	return spin(ctx, func() (bool, error) {
		return m.bell.Word(0).Load() >= m.rung, m.KernelErr()
	})
}

// timed has all ranks begin at once and notes how long the slowest took.
func (m *member) timed(ctx context.Context, what string, do func() error) error {
	if err := m.Barrier(ctx); err != nil {
		return err
	}
	m.meets++
	m.team.met.Add(1)
	all := m.meets * int64(m.team.n)
	if err := spin(ctx, func() (bool, error) { return m.team.met.Load() >= all, nil }); err != nil {
		return err
	}
	start := time.Now()
	err := do()
	m.team.note(what, m.ID(), time.Since(start))
	if err != nil {
		return err
	}
	return m.Barrier(ctx)
}

// note keeps how long a rank took.
func (tm *team) note(what string, rank int, d time.Duration) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	if tm.took[what] == nil {
		tm.took[what] = make([][]time.Duration, tm.n)
	}
	tm.took[what][rank] = append(tm.took[what][rank], d)
}

// figure is the middle of the turns, each as long as its slowest rank, and
// where the middle half of them lies.
type figure struct{ median, low, high time.Duration }

func (f figure) String() string { return fmt.Sprintf("%v (%v to %v)", f.median, f.low, f.high) }

func (tm *team) figure(what string) figure {
	var ds []time.Duration
	for turn := range tm.took[what][0] {
		longest := time.Duration(0)
		for _, of := range tm.took[what] {
			longest = max(longest, of[turn])
		}
		ds = append(ds, longest)
	}
	slices.Sort(ds)
	n := len(ds)
	return figure{ds[n/2], ds[n/4], ds[n*3/4]}
}
