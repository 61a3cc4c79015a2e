package gpu

import (
	"cmp"
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
	"github.com/triggeredplans/sluice/internal/fakecuda"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/plan"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// patience bounds what must not hang.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if _, err := hip.Open("nvidia"); err != nil && os.Getenv(hip.CUDASetting) == "" {
		fmt.Fprintln(os.Stderr, err)
	}
	goleak.VerifyTestMain(m)
}

// real says that the tests run on a GPU.
var real = func() bool {
	if os.Getenv(hip.CUDASetting) == "" {
		if found, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(found) > 0 {
			return true
		}
		lib, err := fakecuda.Library()
		if err != nil {
			return false
		}
		os.Setenv(hip.CUDASetting, lib)
	}
	return !strings.Contains(os.Getenv(hip.CUDASetting), "fakecuda")
}()

// library is the driver's.
func library() string { return cmp.Or(os.Getenv(hip.CUDASetting), "libcuda.so.1") }

// device is the first GPU, or the test is skipped.
func device(t testing.TB) hip.CopyDevice {
	t.Helper()
	p, err := hip.Open("nvidia")
	if err != nil {
		t.Skip(err)
	}
	d, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	return d.(hip.CopyDevice)
}

// figuresOn skips a test whose figures mean nothing on the stand-in.
func figuresOn(t testing.TB) {
	t.Helper()
	if !real {
		t.Skip("figures mean nothing on a stand-in for the driver")
	}
}

// config is a world on a node of its own.
func config(t testing.TB, ranks int) rank.Config {
	t.Helper()
	device(t)
	node, err := rank.NewNode(rank.NodeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return rank.Config{Ranks: ranks, Platform: "nvidia", Node: node, HeapBytes: 16 << 20}
}

// run runs body on every rank of a world.
func run(t testing.TB, cfg rank.Config, body func(ctx context.Context, r *rank.Rank) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := rank.Run(ctx, cfg, body); err != nil {
		t.Fatal(err)
	}
}

// sender is a rank with a buffer, of which it sends a part: chunks of one row.
type sender struct {
	*rank.Rank
	out     *heap.Tensor
	chunks  schedule.Schedule
	program *heap.Tensor
	seed    uint64
	got     []byte
}

const programWords = 1 << 16

// newSender is collective.
func newSender(ctx context.Context, r *rank.Rank, chunks, width int, seed uint64) (*sender, error) {
	s := &sender{Rank: r, seed: seed}
	var err error
	if s.out, err = r.Zeros(ctx, heap.Uint8, r.Size()*chunks, width); err != nil {
		return nil, err
	}
	if s.program, err = r.Zeros(ctx, heap.Uint64, programWords); err != nil {
		return nil, err
	}
	s.got = make([]byte, s.out.Size())
	s.chunks, err = schedule.Chunks(s.out.Rows(r.ID()*chunks, (r.ID()+1)*chunks).Window(), 1, schedule.Options{})
	return s, err
}

// newPlan is newSender and a plan of its chunks.
func newPlan(ctx context.Context, r *rank.Rank, chunks, width int, seed uint64) (*sender, *plan.Plan, error) {
	s, err := newSender(ctx, r, chunks, width, seed)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.New(ctx, r, s.out, s.chunks)
	return s, p, err
}

// aPlanWorks makes a plan, runs a round of it and closes it.
func aPlanWorks(ctx context.Context, r *rank.Rank, chunks, width int, seed uint64) error {
	s, p, err := newPlan(ctx, r, chunks, width, seed)
	if err != nil {
		return err
	}
	return errors.Join(s.round(ctx, p), p.Close(ctx))
}

// produce launches a kernel that fills and marks the rank's chunks.
func (s *sender) produce(p *plan.Plan, h plan.Handle) error {
	prog := kernels.NewProgram(1)
	for c, ch := range s.chunks {
		for _, reg := range ch.Regions {
			prog.On(0).Fill(s.out.At(s.ID()).Addr()-uint64(s.out.Offset()), kernels.Region(reg), kernels.SeedOf(s.seed, s.ID(), h.Round()))
		}
		prog.On(0).Mark(p.FirstChunk() + c)
	}
	return s.launch(h, prog)
}

// launch launches a program of one CTA; h is a plan's handle or 0.
func (s *sender) launch(h any, prog *kernels.Program) error {
	words := prog.Words()
	if len(words) > programWords {
		return fmt.Errorf("a program of %d words has no room", len(words))
	}
	if err := heap.Write(s.program.Rows(0, len(words)), words); err != nil {
		return err
	}
	return s.Launch(kernels.Script, kernels.Grid(1), h, s.program)
}

// round produces, waits, and checks every byte of every rank.
func (s *sender) round(ctx context.Context, p *plan.Plan) error {
	h, err := p.Start(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(s.produce(p, h), p.Wait(ctx)); err != nil {
		return err
	}
	return s.check(h.Round())
}

func (s *sender) check(round uint64) error {
	for of := range s.Size() {
		if err := s.checkOf(of, round); err != nil {
			return err
		}
	}
	return nil
}

// checkOf checks what one rank has sent.
func (s *sender) checkOf(of int, round uint64) error {
	if err := s.out.Read(s.got); err != nil {
		return err
	}
	per := len(s.got) / s.Size()
	if n := kernels.CheckPattern(s.got[of*per:(of+1)*per], kernels.SeedOf(s.seed, of, round), uint64(of*per)); n > 0 {
		return fmt.Errorf("rank %d, round %d: %d bytes of rank %d are wrong", s.ID(), round, n, of)
	}
	return nil
}
