//go:build cgo && linux

package fakerocm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what should take a moment; the machine may be busy.
const patience = 60 * time.Second

// both runs a test for both ways of making queues, on so many devices.
func both(t *testing.T, devices int, test func(t *testing.T, way fakerocm.Way)) {
	t.Helper()
	for _, way := range []fakerocm.Way{fakerocm.HSA, fakerocm.KFD} {
		t.Run(string(way), func(t *testing.T) {
			use(t, way, devices)
			test(t, way)
		})
	}
}

// use has the test run on so many emulated devices.
func use(t *testing.T, way fakerocm.Way, devices int) {
	t.Helper()
	if c := fakerocm.Missing(); c != "" {
		t.Skipf("the emulated ROCm is built with %s, which is not here", c)
	}
	for _, name := range []string{hip.ROCmSetting, hip.KFDSetting, hip.SysfsSetting, fakerocm.Setting} {
		t.Setenv(name, "") // which has them back as they were when the test ends
	}
	if err := fakerocm.Use(way, devices); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tell(t, devices, "") })
}

// tell sets how the library behaves.
func tell(t *testing.T, devices int, text string) {
	t.Helper()
	if err := fakerocm.Tell(fmt.Sprintf("devices=%d %s", devices, text)); err != nil {
		t.Fatal(err)
	}
}

// holds is what the library holds, without what a device keeps once it is open.
func holds(t *testing.T) fakerocm.Counts {
	t.Helper()
	c, err := fakerocm.Now()
	if err != nil {
		t.Fatal(err)
	}
	c.Packets, c.Kernels, c.Files = 0, 0, 0
	return c
}

// settled opens and closes a world, so that devices are open and what a later
// world leaves behind can be told.
func settled(t *testing.T, ranks int) fakerocm.Counts {
	t.Helper()
	w, err := rank.Open(t.Context(), config(t, ranks, rank.NodeConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return holds(t)
}

// nothingLeft compares what the library holds with what it held before.
func nothingLeft(t *testing.T, before fakerocm.Counts, node *rank.Node) {
	t.Helper()
	if after := holds(t); after != before {
		t.Errorf("something is left behind: %+v before, %+v after", before, after)
	}
	if n := len(node.Queues()); n > 0 {
		t.Errorf("%d queues are left", n)
	}
}

func config(t *testing.T, ranks int, node rank.NodeConfig) rank.Config {
	t.Helper()
	if node.RingBytes == 0 {
		node.RingBytes = 16 << 10
	}
	n, err := rank.NewNode(node)
	if err != nil {
		t.Fatal(err)
	}
	return rank.Config{Ranks: ranks, HeapBytes: 1 << 20, Platform: "amd", Node: n, CloseTimeout: 5 * time.Second}
}

// gather is a rank's part of an all-gather whose regions are windows.
type gather struct {
	*rank.Rank
	out     *heap.Tensor
	plan    *plan.Plan
	program *heap.Tensor
}

const (
	gatherChunks = 3
	gatherRows   = 4 // of each chunk
	gatherCols   = 40
	gatherPitch  = 64
	gatherSeed   = 0xa3d
)

func newGather(ctx context.Context, r *rank.Rank) (*gather, error) {
	g := &gather{Rank: r}
	var err error
	if g.out, err = r.Zeros(ctx, heap.Uint8, r.Size()*gatherChunks*gatherRows, gatherPitch); err != nil {
		return nil, err
	}
	if g.program, err = r.Zeros(ctx, heap.Uint64, 1024); err != nil {
		return nil, err
	}
	chunks, err := g.chunks(r.ID())
	if err != nil {
		return nil, err
	}
	g.plan, err = plan.New(ctx, r, g.out, chunks)
	return g, err
}

func (g *gather) chunks(of int) (schedule.Schedule, error) {
	const per = gatherChunks * gatherRows
	return schedule.Chunks(g.out.Rows(of*per, (of+1)*per).Cols(0, gatherCols).Window(), gatherRows, schedule.Options{})
}

// produce launches a kernel that writes and marks the rank's chunks.
func (g *gather) produce(h plan.Handle) error {
	chunks, err := g.chunks(g.ID())
	if err != nil {
		return err
	}
	p := kernels.NewProgram(1)
	buffer := g.Memory().Addr() + uint64(g.out.Block().Offset())
	for c, ch := range chunks {
		for _, reg := range ch.Regions {
			p.On(0).Fill(buffer, kernels.Region(reg), kernels.SeedOf(gatherSeed, g.ID(), h.Round()))
		}
		p.On(0).Mark(g.plan.FirstChunk() + c)
	}
	words := p.Words()
	if err := heap.Write(g.program.Rows(0, len(words)), words); err != nil {
		return err
	}
	return g.Launch(kernels.Script, hip.Grid{Blocks: 1, Threads: 1}, h, g.program)
}

// round runs a round and checks every byte.
func (g *gather) round(ctx context.Context) error {
	h, err := g.plan.Start(ctx)
	if err != nil {
		return err
	}
	if err := g.produce(h); err != nil {
		return err
	}
	if err := g.plan.Wait(ctx); err != nil {
		return err
	}
	bytes := make([]byte, g.out.Size())
	if err := g.out.Read(bytes); err != nil {
		return err
	}
	for of := range g.Size() {
		chunks, err := g.chunks(of)
		if err != nil {
			return err
		}
		for c, ch := range chunks {
			for _, reg := range ch.Regions {
				for row := range reg.Height {
					at := reg.Offset + row*reg.Pitch
					if n := kernels.CheckPattern(bytes[at:at+reg.Width], kernels.SeedOf(gatherSeed, of, h.Round()), uint64(at)); n > 0 {
						return fmt.Errorf("round %d: %d bytes of chunk %d of rank %d are wrong", h.Round(), n, c, of)
					}
				}
			}
		}
	}
	return nil
}

// rounds is the life of a rank that gathers so often.
func rounds(n int) func(context.Context, *rank.Rank) error {
	return func(ctx context.Context, r *rank.Rank) error {
		g, err := newGather(ctx, r)
		if err != nil {
			return err
		}
		for i := range n {
			if i > 0 {
				if err := g.plan.NextRound(ctx); err != nil {
					return err
				}
			}
			if err := g.round(ctx); err != nil {
				return err
			}
		}
		return g.plan.Close(ctx)
	}
}

// has checks an error's type, returns it, and checks that its text says all.
func has[E error](t *testing.T, err error, says ...string) (e E) {
	t.Helper()
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a %T", err, e)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q is not in %q", s, err)
		}
	}
	return e
}

// copyTree copies a topology, changing lines.
func copyTree(t *testing.T, devices int, old, new string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(fakerocm.Sysfs(devices))); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// putAround has the rank put linear copies to every peer.
func (g *gather) putAround(ctx context.Context) error {
	src, err := g.Zeros(ctx, heap.Uint8, 1000)
	if err != nil {
		return err
	}
	dst, err := g.Zeros(ctx, heap.Uint8, 1000)
	if err != nil {
		return err
	}
	for peer := range g.Size() {
		if peer == g.ID() {
			continue
		}
		if err := g.Put(ctx, peer, dst, src, rank.PutOptions{}); err != nil {
			return err
		}
		if err := g.Quiet(ctx, peer); err != nil {
			return err
		}
	}
	return g.Barrier(ctx)
}
