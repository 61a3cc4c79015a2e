package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/inject"
	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// Plan is one rank's part of a triggered plan. Like its rank, it is used by
// one goroutine at a time.
type Plan struct {
	shared *shared
	rank   *rank.Rank
	own    schedule.Schedule // the chunks that the rank sends
	first  int               // id of the first of them

	owner    copyengine.Owner
	queues   []*copyengine.Queue // to each peer, if the rank sends anything
	programs []copyengine.Program
	tables   []table // every rank's, as this rank sees them
	waiter   *hip.Waiter
	started  atomic.Int64          // hip.Clock of the last Start
	fault    atomic.Pointer[error] // of a queue that carries the rank's chunks
	cut      atomic.Bool           // Close opened gates of chunks that were not marked
	next     rank.Call
}

// chunk is a chunk of any rank, by its global id.
type chunk struct {
	owner, writers int
}

// shared is what the ranks' parts of one plan have in common.
type shared struct {
	name    string
	world   *rank.World
	first   uint64      // round
	buffer  *heap.Block // that the plan sends parts of
	block   *heap.Block // gates, handle, tables and fault row
	chunks  []chunk
	parts   []*Plan
	tables  []table
	items   []copyengine.Item // everything that is prepared for a round
	closing *rank.Closing
	using   hip.Word // launches with the plan's handle that have not ended

	mu       sync.Mutex
	machine  *machine
	dropped  int // ranks that gave up a plan that could not be prepared
	finish   sync.Once
	finished atomic.Bool // finish has begun
	retired  bool        // its marks are in the world's tally, whose lock guards this
	done     chan struct{}
}

func (s *shared) String() string { return s.name }

// proposal is what a rank brings to New.
type proposal struct {
	rank   *rank.Rank
	out    *heap.Tensor
	chunks schedule.Schedule
	first  uint64 // round
	made   *Plan  // the verdict
}

// New makes a plan that sends each rank's chunks of out to the same place in
// out on every other rank, and prepares its first round. Offsets in chunks
// count from the start of out's allocation, as those of Tensor.Window do; a
// rank that sends nothing passes an empty schedule.
//
// Collective, and all or none: if one rank cannot prepare (its schedule is
// invalid, a queue is full), every rank gets a *rank.VoteError that names it
// and wraps the cause, and nothing is left behind.
func New(ctx context.Context, r *rank.Rank, out *heap.Tensor, chunks schedule.Schedule) (*Plan, error) {
	return newAt(ctx, r, out, chunks, 1)
}

// newAt is New with the number of the first round.
func newAt(ctx context.Context, r *rank.Rank, out *heap.Tensor, chunks schedule.Schedule, first uint64) (*Plan, error) {
	mine := &proposal{rank: r, out: out, chunks: chunks, first: first}
	return mine.make(ctx, mine.validate())
}

// make brings a proposal, with what is wrong with it, to the other ranks'.
func (mine *proposal) make(ctx context.Context, err error) (*Plan, error) {
	r := mine.rank
	if err := r.Meet(ctx, &rank.Call{Op: "New", Err: err, Value: mine, Decide: agree}); err != nil {
		r.World().Tally().Refuse(kindOf(err))
		return nil, fmt.Errorf("plan: New on rank %d: %w", r.ID(), err)
	}
	p := mine.made
	s := p.shared
	err = p.encode(mine.first)
	err = r.Meet(ctx, &rank.Call{Op: "New", On: s, Err: err, Decide: s.prepare})
	if err != nil {
		s.world.Tally().Refuse(kindOf(err))
		s.drop()
		return nil, fmt.Errorf("plan: New on rank %d: %w", r.ID(), err)
	}
	return p, nil
}

// validate is a rank's own check of its proposal.
func (mine *proposal) validate() error {
	r, out := mine.rank, mine.out
	if err := r.Check(out); err != nil {
		return &rank.TensorError{Op: "New", Rank: r.ID(), Err: err}
	}
	if err := r.World().Node().Inject(inject.Validate, r.ID()); err != nil {
		return err
	}
	if err := mine.chunks.Validate(out.Block().Bytes(), r.Device().Properties().LargestCopy); err != nil {
		return err
	}
	return within(r.ID(), mine.chunks, out, "the plan's tensor")
}

// within checks that every region lies in the bytes that t spans.
func within(rank int, chunks schedule.Schedule, t *heap.Tensor, what string) error {
	w := t.Window()
	from, to := w.Offset, w.Offset+int64(w.Rows-1)*w.Pitch+int64(w.Cols*w.Elem)
	for c, ch := range chunks {
		for i, reg := range ch.Regions {
			if reg.Offset < from || reg.End() > to {
				return &OutsideError{Rank: rank, Chunk: c, Region: i, Lo: reg.Offset, Hi: reg.End(), From: from, To: to, What: what}
			}
		}
	}
	return nil
}

// agree is the first half of New: the last rank to arrive checks the proposals
// against each other and allocates what the plan needs.
func agree(calls []*rank.Call) (err error) {
	proposals := make([]*proposal, len(calls))
	for i, c := range calls {
		proposals[i] = c.Value.(*proposal)
	}
	lead := proposals[0]
	chunks := 0
	for _, p := range proposals {
		if p.out.Block() != lead.out.Block() {
			return ErrBuffer
		}
		chunks += len(p.chunks)
	}
	if chunks == 0 {
		return ErrEmpty
	}
	for a := range proposals {
		for b := range a {
			if o, ok := schedule.Overlap(proposals[b].chunks, proposals[a].chunks); ok {
				return &OverlapError{RankA: b, RankB: a, ChunkA: o.ChunkA, ChunkB: o.ChunkB, Lo: o.Lo, Hi: o.Hi}
			}
		}
	}
	s, err := newShared(lead, chunks)
	if err != nil {
		return err
	}
	for _, p := range proposals {
		p.made = s.add(p)
	}
	return nil
}

// newShared allocates a plan's gates and registers it with its world.
func newShared(lead *proposal, chunks int) (*shared, error) {
	w := lead.rank.World()
	if err := w.Node().Inject(inject.Gates, lead.rank.ID()); err != nil {
		return nil, err
	}
	traced := w.Timeline() != nil && lead.rank.Device().Properties().ClockHertz != 0
	at := newLayout(chunks, w.Size(), traced)
	block, err := w.Heap().Alloc(at.bytes)
	if err != nil {
		return nil, fmt.Errorf("gates of %d chunks: %w", chunks, err)
	}
	buffer := lead.out.Block()
	if err := buffer.Hold(); err != nil {
		block.Free()
		return nil, err
	}
	s := &shared{
		name:  fmt.Sprintf("plan %d of %s", w.NextPlan(), w.Name()),
		world: w, first: lead.first, buffer: buffer, block: block, done: make(chan struct{}),
	}
	s.closing = rank.NewClosing(s, w.Size())
	s.machine = newMachine(s.name, w.Size(), lead.first)
	for i := range w.Size() {
		s.tables = append(s.tables, table{mem: w.Heap().Memory(i), base: block.Offset(), at: at})
	}
	if err := w.Register(s); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// add makes the next rank's part; chunk ids follow those of the ranks before.
func (s *shared) add(mine *proposal) *Plan {
	p := &Plan{shared: s, rank: mine.rank, own: mine.chunks, first: len(s.chunks), waiter: hip.NewWaiter()}
	p.owner = copyengine.Owner{World: s.world.Name(), Plan: s.name, Rank: p.rank.ID(), Faulted: p.faulted}
	p.next = rank.Call{Op: "NextRound", On: s, Decide: s.prepare, Closing: s.closing}
	for _, c := range p.own {
		s.chunks = append(s.chunks, chunk{owner: p.rank.ID(), writers: c.Writers})
	}
	s.parts = append(s.parts, p)
	return p
}

// encode is a rank's share of the second half of New: its gates, and the
// chains that it sends to each peer.
func (p *Plan) encode(first uint64) error {
	s, r := p.shared, p.rank
	if err := s.tables[r.ID()].init(s, r.ID(), first); err != nil {
		return err
	}
	for _, t := range s.tables {
		p.tables = append(p.tables, t.viewed())
	}
	if err := p.inject(inject.Encode); err != nil {
		return err
	}
	if len(p.own) == 0 {
		return nil
	}
	for peer := range r.Size() {
		if peer == r.ID() {
			continue
		}
		q := r.Queue(peer)
		program, err := q.Compile(p.chain(peer))
		if err != nil {
			return err
		}
		program.SetRound(uint32(first))
		p.queues = append(p.queues, q)
		p.programs = append(p.programs, program)
	}
	return nil
}

// chain is what the rank sends to one peer in a round.
func (p *Plan) chain(peer int) copyengine.Chain {
	s := p.shared
	mine, theirs := s.tables[p.rank.ID()], s.tables[peer]
	src := mine.addr(s.buffer.Offset())
	dst := theirs.addr(s.buffer.Offset())
	chain := make(copyengine.Chain, len(p.own))
	for i, c := range p.own {
		step := &chain[i]
		step.Gate = mine.addr(mine.gate(p.first+i, kernels.GateReady))
		step.Signal = theirs.addr(theirs.gate(p.first+i, kernels.GateArrival))
		step.Rounds = true
		step.Copies = make([]copyengine.Copy, len(c.Regions))
		for j, reg := range c.Regions {
			step.Copies[j] = copyengine.Copy{
				Src: src + uint64(reg.Offset), Dst: dst + uint64(reg.Offset),
				Width: reg.Width, Height: reg.Height, SrcPitch: reg.Pitch, DstPitch: reg.Pitch,
			}
		}
		if mine.at.stamps != 0 {
			step.Began, step.Ended, step.Arrived = mine.stamps(s, p.first+i, peer)
		}
	}
	return chain
}

// prepare is how a round is prepared, on all ranks or on none: the Decide of
// New's second half and of NextRound. The ranks have patched their programs.
func (s *shared) prepare([]*rank.Call) error {
	if s.items == nil {
		for _, p := range s.parts {
			for i, q := range p.queues {
				s.items = append(s.items, copyengine.Item{Queue: q, Program: p.programs[i], Owner: &p.owner})
			}
		}
		copyengine.SortItems(s.items)
	}
	s.mu.Lock()
	round := s.machine.round + 1
	s.mu.Unlock()
	began := hip.Clock()
	returned := false
	defer func() {
		if !returned { // some of it may have been rung
			s.tear(round, ErrCut)
		}
	}()
	failed, err := copyengine.Prepare(s.items, round)
	returned = true
	s.world.Tally().Preparation.Observe(time.Duration(hip.Clock() - began))
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.machine.advance()
		return nil
	}
	err = &rank.VoteError{Call: "preparing a round of " + s.name, Rank: failed, Err: err}
	if torn(err) {
		err = errors.Join(err, s.tear(round, err))
	}
	return err
}

// tear makes the plan FAILED, and lets what was rung of a round pass.
func (s *shared) tear(round uint64, why error) (err error) {
	s.mu.Lock()
	s.machine.tore(why)
	s.mu.Unlock()
	for _, p := range s.parts {
		err = errors.Join(err, p.openGates(round))
	}
	return err
}

// drop gives up a plan whose New failed, on one rank; the last rank to do so
// frees it. If some of it was rung, the queues drain it first.
func (s *shared) drop() {
	s.mu.Lock()
	s.dropped++
	last := s.dropped == len(s.parts)
	rung := s.machine.prepared > 0
	s.mu.Unlock()
	switch {
	case !last:
	case rung:
		s.Abandon()
	default:
		s.world.Unregister(s)
		s.free()
		close(s.done)
	}
}

// free gives the plan's memory back.
func (s *shared) free() {
	s.block.Free()
	s.buffer.Release()
}
