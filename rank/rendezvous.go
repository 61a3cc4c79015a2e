package rank

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Call is what one rank brings to a collective. A Call may be used again once
// Meet has returned.
type Call struct {
	Op string // the collective's name, for example "NextRound"
	// On is what it is about, for example a plan; nil for the world. All ranks
	// must bring an equal On. Its text goes into errors.
	On fmt.Stringer
	// Err is why this rank cannot do its share; it fails the collective for all.
	Err error
	// Value is for Decide.
	Value any
	// Decide is run once, by the last rank to arrive, when no rank brought an
	// error. Its error is everybody's. It must not meet or wait for ranks. The
	// calls are in the order of ranks.
	Decide func(calls []*Call) error
	// Closing, if not nil, is the closing of what the call is about: once a rank
	// is in it the call fails.
	Closing *Closing
}

func (c *Call) String() string {
	if c.On == nil {
		return c.Op
	}
	return fmt.Sprintf("%s of %v", c.Op, c.On)
}

// Closing counts the ranks that have come to the Close of one thing. It is
// outside the sequence of collectives: a rank that is in it does not hold up
// the others for ever, since their collectives fail meanwhile.
type Closing struct {
	On       fmt.Stringer
	entered  []bool
	complete bool
}

// NewClosing returns a closing for a world of n ranks.
func NewClosing(on fmt.Stringer, n int) *Closing {
	return &Closing{On: on, entered: make([]bool, n)}
}

// rendezvous is where the ranks of a world meet. The k-th collective of each
// rank is generation k. The methods with a lower-case verb under mu are its
// core: they take events and note verdicts, and do not wait.
type rendezvous struct {
	mu    sync.Mutex
	ranks []seat
	gens  []*generation // those that not every rank has come to, oldest first
	spare []*generation
	left  []int // ranks that are gone, in the order in which they left
}

// seat is one rank at the rendezvous.
type seat struct {
	next    uint64        // the generation that the rank's next call belongs to
	gen     *generation   // that the rank waits in, or nil
	closing *Closing      // that the rank waits in, or nil
	busy    bool          // a collective of the rank is going on
	gone    error         // why the rank will not come any more, or nil
	verdict error         // of what it waited in
	wake    chan struct{} // one token: the verdict is there
}

type generation struct {
	number   uint64
	calls    []*Call // nil: not arrived
	arrived  int
	deciding bool
	failed   error // for the ranks yet to arrive
}

func newRendezvous(n int) *rendezvous {
	v := &rendezvous{ranks: make([]seat, n)}
	for i := range v.ranks {
		v.ranks[i].wake = make(chan struct{}, 1)
	}
	return v
}

// meet brings rank's call and returns the verdict.
func (v *rendezvous) meet(ctx context.Context, rank int, call *Call) error {
	v.mu.Lock()
	s := &v.ranks[rank]
	if s.busy {
		v.mu.Unlock()
		return &BusyError{Rank: rank, Call: call.String()}
	}
	if err := context.Cause(ctx); err != nil && call.Err == nil {
		call.Err = err
		defer func() { call.Err = nil }()
	}
	s.busy = true
	g, last, err := v.arrive(rank, call)
	v.mu.Unlock()
	defer v.rest(rank)
	switch {
	case g == nil:
		return err
	case last:
		v.decide(g)
		<-s.wake
		return s.verdict
	}
	return v.wait(ctx, rank, func() bool {
		if g.deciding {
			return false
		}
		v.fail(g, &WithdrawnError{Rank: rank, Call: call.String(), Err: context.Cause(ctx)})
		return true
	})
}

func (v *rendezvous) rest(rank int) {
	v.mu.Lock()
	v.ranks[rank].busy = false
	v.mu.Unlock()
}

// wait parks rank until its verdict is there. When ctx ends first it may
// withdraw, which notes a verdict, or reports that it is too late for that.
func (v *rendezvous) wait(ctx context.Context, rank int, withdraw func() bool) error {
	s := &v.ranks[rank]
	select {
	case <-s.wake:
		return s.verdict
	case <-ctx.Done():
	}
	v.mu.Lock()
	if s.gen != nil || s.closing != nil {
		withdraw()
	}
	v.mu.Unlock()
	<-s.wake
	return s.verdict
}

// decide gives everybody in g the verdict, even if Decide panics or ends the
// goroutine: the others must not wait for a rank that has come already.
func (v *rendezvous) decide(g *generation) {
	err := ErrGoexit
	defer func() {
		switch p := recover(); {
		case p != nil:
			err = &VerdictError{Call: g.calls[0].String(), Err: &PanicError{Value: p, Stack: string(debug.Stack())}}
		case err == ErrGoexit:
			err = &VerdictError{Call: g.calls[0].String(), Err: err}
		}
		v.mu.Lock()
		v.settle(g, err)
		v.mu.Unlock()
	}()
	err = decide(g.calls)
}

// decide runs the first rank's Decide unless a rank brought an error.
func decide(calls []*Call) (err error) {
	for r, c := range calls {
		if c.Err != nil {
			return &VoteError{Call: c.String(), Rank: r, Err: c.Err}
		}
	}
	f := calls[0].Decide
	if f == nil {
		return nil
	}
	if err := f(calls); err != nil {
		if verdictOf(err) != nil {
			return err
		}
		return &VerdictError{Call: calls[0].String(), Err: err}
	}
	return nil
}

// arrive takes rank's call. Either g is the generation that the rank must wait
// in, last saying that it completed it and must decide; or err is the verdict.
func (v *rendezvous) arrive(rank int, call *Call) (g *generation, last bool, err error) {
	s := &v.ranks[rank]
	g = v.find(s.next)
	if g != nil && g.failed != nil {
		s.next++
		g.calls[rank] = call
		g.arrived++
		err := g.failed
		v.retire(g)
		return nil, false, err
	}
	if len(v.left) > 0 {
		r := v.left[0] // the others may have left because of it
		return nil, false, &GoneError{Call: call.String(), Rank: r, Err: v.ranks[r].gone}
	}
	if err := v.refused(rank, call); err != nil {
		return nil, false, err // it has not come to the generation
	}
	if g == nil {
		g = v.add(s.next)
	}
	s.next++
	g.calls[rank] = call
	g.arrived++
	s.gen, s.verdict = g, nil
	if other := g.mismatch(call); other >= 0 {
		v.fail(g, &MismatchError{Rank: rank, Call: call.String(), OtherRank: other, OtherCall: g.calls[other].String()})
		return g, false, nil
	}
	if g.arrived == len(v.ranks) {
		g.deciding = true
		return g, true, nil
	}
	return g, false, nil
}

// refused says why a call cannot complete while some rank is in a Close.
func (v *rendezvous) refused(rank int, call *Call) error {
	if c := call.Closing; c != nil {
		if r := slices.Index(c.entered, true); r >= 0 {
			return &ClosingError{Call: call.String(), Rank: r, On: c.On.String()}
		}
	}
	for r := range v.ranks {
		s := &v.ranks[r]
		if c := s.closing; c != nil && !c.entered[rank] && s.next <= v.ranks[rank].next {
			return &ClosingError{Call: call.String(), Rank: r, On: c.On.String()}
		}
	}
	return nil
}

// mismatch returns a rank that is in g with another call than c, or -1.
func (g *generation) mismatch(c *Call) int {
	for r, o := range g.calls {
		if o != nil && (o.Op != c.Op || o.On != c.On) {
			return r
		}
	}
	return -1
}

// find returns the generation with that number that somebody has come to.
func (v *rendezvous) find(number uint64) *generation {
	for _, g := range v.gens {
		if g.number == number {
			return g
		}
	}
	return nil
}

// add begins the generation with that number.
func (v *rendezvous) add(number uint64) *generation {
	var g *generation
	if n := len(v.spare); n > 0 {
		g, v.spare = v.spare[n-1], v.spare[:n-1]
	} else {
		g = &generation{calls: make([]*Call, len(v.ranks))}
	}
	g.number = number
	v.gens = append(v.gens, g)
	return g
}

// retire puts g aside once every rank has come to it.
func (v *rendezvous) retire(g *generation) {
	if g.arrived == len(v.ranks) {
		v.drop(g)
	}
}

func (v *rendezvous) drop(g *generation) {
	i := slices.Index(v.gens, g)
	v.gens = slices.Delete(v.gens, i, i+1)
	clear(g.calls)
	g.arrived, g.deciding, g.failed = 0, false, nil
	v.spare = append(v.spare, g)
}

// settle gives everybody in g the verdict.
func (v *rendezvous) settle(g *generation, err error) {
	for r := range v.ranks {
		if v.ranks[r].gen == g {
			v.release(r, err)
		}
	}
	v.retire(g)
}

// release ends rank's wait with a verdict.
func (v *rendezvous) release(rank int, err error) {
	s := &v.ranks[rank]
	s.gen, s.closing, s.verdict = nil, nil, err
	s.wake <- struct{}{}
}

// fail gives everybody in g, and those yet to arrive, the same error.
func (v *rendezvous) fail(g *generation, err error) {
	g.failed = err
	v.settle(g, err)
}

// leave notes that rank's body has ended: collectives that wait for it fail,
// and closings do not wait for it any more.
func (v *rendezvous) leave(rank int, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ranks[rank].gone = why
	v.left = append(v.left, rank)
	for _, g := range slices.Clone(v.gens) {
		if g.calls[rank] == nil && g.failed == nil {
			v.failGone(g, rank, why)
		}
	}
	for r := range v.ranks {
		if c := v.ranks[r].closing; c != nil {
			v.completeIfAllCame(c)
		}
	}
}

// gone is why rank will not come any more, or nil.
func (v *rendezvous) gone(rank int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ranks[rank].gone
}

func (v *rendezvous) failGone(g *generation, rank int, why error) {
	for _, c := range g.calls {
		if c != nil {
			v.fail(g, &GoneError{Call: c.String(), Rank: rank, Err: why})
			return
		}
	}
}

// reset forgets that bodies have ended, before new ones begin.
func (v *rendezvous) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for r := range v.ranks {
		s := &v.ranks[r]
		s.gone, s.next = nil, 0
		select {
		case <-s.wake: // of a rank whose goroutine ended while it decided
		default:
		}
	}
	v.gens, v.left = v.gens[:0], v.left[:0]
}

// end makes every later collective fail with ErrClosed.
func (v *rendezvous) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = v.left[:0]
	for r := range v.ranks {
		v.ranks[r].gone = ErrClosed
		v.left = append(v.left, r)
	}
}

// enter brings rank to c and waits under ctx until every rank has come or
// ended. Coming counts even if the wait is cut.
func (v *rendezvous) enter(ctx context.Context, rank int, c *Closing) error {
	v.mu.Lock()
	s := &v.ranks[rank]
	if s.busy {
		c.entered[rank] = true
		v.completeIfAllCame(c)
		v.mu.Unlock()
		return &BusyError{Rank: rank, Call: fmt.Sprintf("Close of %v", c.On)}
	}
	s.busy = true
	err, waits := v.come(rank, c)
	v.mu.Unlock()
	defer v.rest(rank)
	if !waits {
		return err
	}
	return v.wait(ctx, rank, func() bool {
		v.release(rank, fmt.Errorf("rank: Close of %v: rank %d stopped waiting for the others: %w", c.On, rank, context.Cause(ctx)))
		return true
	})
}

// come notes that rank is in the Close of c. It fails the collectives in which
// others wait for the rank and that cannot complete before it leaves.
func (v *rendezvous) come(rank int, c *Closing) (err error, waits bool) {
	c.entered[rank] = true
	v.completeIfAllCame(c)
	if c.complete {
		return nil, false
	}
	s := &v.ranks[rank]
	for r := range v.ranks {
		o := &v.ranks[r]
		switch {
		case r == rank:
		case o.gen != nil && !o.gen.deciding && !c.entered[r] && o.gen.calls[rank] == nil:
			v.uncome(r, rank, c)
		case o.closing != nil && o.closing != c && !c.entered[r] && !o.closing.entered[rank]:
			return &CrossedError{Rank: rank, On: c.On.String(), OtherRank: r, OtherOn: o.closing.On.String()}, false
		}
	}
	s.closing, s.verdict = c, nil
	return nil, true
}

// uncome takes rank r's call back out of the generation in which it waits for
// a rank that is closing c: the collective has not taken place.
func (v *rendezvous) uncome(r, closer int, c *Closing) {
	o := &v.ranks[r]
	g := o.gen
	call := g.calls[r]
	g.calls[r] = nil
	g.arrived--
	o.next--
	if g.arrived == 0 {
		v.drop(g)
	}
	v.release(r, &ClosingError{Call: call.String(), Rank: closer, On: c.On.String()})
}

// completeIfAllCame ends c's waits once every rank has come to it or ended.
func (v *rendezvous) completeIfAllCame(c *Closing) {
	for r, in := range c.entered {
		if !in && v.ranks[r].gone == nil {
			return
		}
	}
	c.complete = true
	for r := range v.ranks {
		if v.ranks[r].closing == c {
			v.release(r, nil)
		}
	}
}
