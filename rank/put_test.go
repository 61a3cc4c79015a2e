package rank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
)

func TestAPutCopiesEveryByteAndNoOther(t *testing.T) {
	type pick func(a, b *heap.Tensor) *heap.Tensor
	for name, c := range map[string]struct{ dst, src pick }{
		"linear, to the same place": {
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(8, 16) },
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(8, 16) }},
		"linear, to another tensor and offset": {
			func(_, b *heap.Tensor) *heap.Tensor { return b.Rows(5, 9) },
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(1, 7) }}, // 6 rows of 32 are 4 of 48
		"a window to a window of another pitch": {
			func(_, b *heap.Tensor) *heap.Tensor { return b.Rows(2, 9).Cols(11, 40) },
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(9, 16).Cols(3, 32) }},
		"a window to whole rows": {
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(0, 5) },
			func(_, b *heap.Tensor) *heap.Tensor { return b.Rows(3, 8).Cols(16, 48) }},
		"whole rows to a window": {
			func(_, b *heap.Tensor) *heap.Tensor { return b.Rows(0, 5).Cols(0, 32) },
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(10, 15) }},
		"one byte": {
			func(_, b *heap.Tensor) *heap.Tensor { return b.Rows(9, 10).Cols(47, 48) },
			func(a, _ *heap.Tensor) *heap.Tensor { return a.Rows(0, 1).Cols(1, 2) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
				own, err := tensors(ctx, r, heap.Uint8, []int{16, 32}, []int{10, 48})
				if err != nil {
					return err
				}
				there, err := tensors(ctx, r, heap.Uint8, []int{16, 32}, []int{10, 48})
				if err != nil {
					return err
				}
				src, dst := c.src(own[0], own[1]), c.dst(there[0], there[1])
				for round := uint64(1); round <= 4; round++ {
					if err := fill(src, r.ID(), round); err != nil {
						return err
					}
					if err := r.Put(ctx, right(r), dst, src, PutOptions{}); err != nil {
						return err
					}
					if err := errors.Join(r.Quiet(ctx, right(r)), r.Barrier(ctx), check(dst, left(r), round)); err != nil {
						return err
					}
					if err := dst.Write(make([]byte, dst.Size())); err != nil { // and nothing beside it
						return err
					}
					if err := errors.Join(blank(there[0]), blank(there[1]), check(src, r.ID(), round), r.Barrier(ctx)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// smallCopies is a device whose copies are short.
type smallCopies struct {
	hip.Device
	most int64
}

func (d smallCopies) Properties() hip.Properties {
	p := d.Device.Properties()
	p.LargestCopy = d.most
	return p
}

func TestAPutLongerThanTheLargestCopyIsSplit(t *testing.T) {
	hostOnly(t, "packets that a test sees")
	for bytes, copies := range map[int]int{99: 1, 100: 1, 101: 2, 1000: 10, 1001: 11} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var widths []int64
			cfg := config(t, 2, NodeConfig{Intercept: func(_, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
				if p.Op == sdma.OpCopyLinear {
					mu.Lock()
					defer mu.Unlock()
					widths = append(widths, p.Copy.Width)
				}
				return nil
			}})
			run(t, cfg, func(ctx context.Context, r *Rank) error {
				ts, err := tensors(ctx, r, heap.Uint8, []int{bytes}, []int{bytes})
				if err != nil {
					return err
				}
				if r.ID() == 1 {
					return errors.Join(r.Barrier(ctx), check(ts[1], 0, 3))
				}
				r.device = smallCopies{r.device, 100}
				return errors.Join(fill(ts[0], 0, 3), r.Put(ctx, 1, ts[1], ts[0], PutOptions{}), r.Quiet(ctx, 1), r.Barrier(ctx))
			})
			if len(widths) != copies || slices.Max(widths) > 100 {
				t.Errorf("copies of %v bytes, want %d of at most 100", widths, copies)
			}
		})
	}
}

func TestPutsToAPeerAreCarriedInOrder(t *testing.T) {
	hostOnly(t, "packets that a test sees")
	t.Parallel()
	const puts = 300 // more than the queue holds at once
	var got []uint64
	cfg := config(t, 2, NodeConfig{Intercept: func(from, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if from.Device == 0 && p.Op == sdma.OpCopyLinear {
			got = append(got, p.Copy.Src)
		}
		return nil
	}})
	var want []uint64
	run(t, cfg, func(ctx context.Context, r *Rank) error {
		ts, err := tensors(ctx, r, heap.Uint64, []int{puts}, []int{1})
		if err != nil {
			return err
		}
		if r.ID() == 1 {
			if err := r.Barrier(ctx); err != nil {
				return err
			}
			if v, err := r.Load(ts[1], 0); err != nil || v != puts-1+5 {
				return errors.Join(err, fmt.Errorf("the last Put left %d", v))
			}
			return nil
		}
		for i := range puts {
			src := ts[0].Rows(i, i+1)
			want = append(want, src.Addr())
			if err := heap.Write(src, []uint64{uint64(i) + 5}); err != nil {
				return err
			}
			if err := r.Put(ctx, 1, ts[1], src, PutOptions{}); err != nil {
				return err
			}
		}
		return errors.Join(r.Quiet(ctx, 1), r.Barrier(ctx))
	})
	if !slices.Equal(got, want) {
		t.Errorf("%d copies were carried in another order than the %d puts", len(got), len(want))
	}
}

// Each rank puts its data and the other reads it as soon as its signal says so;
// nothing else keeps them in step.
func TestASignalTellsThePeerThatTheDataIsThere(t *testing.T) {
	t.Parallel()
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		data, err := tensors(ctx, r, heap.Uint8, []int{3, 100}, []int{3, 120}, []int{1}, []int{1})
		if err != nil {
			return err
		}
		words, err := tensors(ctx, r, heap.Uint64, []int{2})
		if err != nil {
			return err
		}
		src, dst := data[0], data[1].Cols(20, 120)
		arrived, read := words[0].Rows(0, 1), words[0].Rows(1, 2)
		for round := uint64(1); round <= 50; round++ {
			if err := fill(src, r.ID(), round); err != nil {
				return err
			}
			if err := r.Put(ctx, right(r), dst, src, PutOptions{Signal: arrived}); err != nil {
				return err
			}
			if err := errors.Join(r.Await(ctx, arrived, 0, round), check(dst, left(r), round)); err != nil {
				return err
			}
			// The peer may put again once it is told that this was read.
			if err := r.Put(ctx, right(r), data[3], data[2], PutOptions{Signal: read}); err != nil {
				return err
			}
			if err := errors.Join(r.Quiet(ctx, right(r)), r.Await(ctx, read, 0, round)); err != nil {
				return err
			}
		}
		return nil
	})
}

// quietly has rank 0 do something in a bubble, where it can see that everybody
// else is waiting, while rank 1 waits to look at the outcome.
func quietly(t *testing.T, node NodeConfig, zero, one func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error) {
	hostOnly(t, "bubbles, in which all work is goroutines'")
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run(t, config(t, 2, node), func(ctx context.Context, r *Rank) error {
			data, err := tensors(ctx, r, heap.Uint8, []int{2, 64}, []int{2, 64})
			if err != nil {
				return err
			}
			words, err := tensors(ctx, r, heap.Uint64, []int{1}, []int{1}, []int{1})
			if err != nil {
				return err
			}
			if r.ID() == 0 {
				return errors.Join(zero(ctx, r, data, words), r.Barrier(ctx))
			}
			return errors.Join(r.Barrier(ctx), one(ctx, r, data, words))
		})
	})
}

// count is the first word of a tensor on a rank.
func count(t *heap.Tensor, rank int) (uint64, error) {
	var v [1]uint64
	err := heap.Read(t.At(rank), v[:])
	return v[0], err
}

func TestAPutWaitsUntilItsFlagHasItsValue(t *testing.T) {
	for _, c := range []struct {
		value uint32
		shut  []uint64
		open  uint64
	}{
		{1, []uint64{0}, 1},
		{7, []uint64{3, 6}, 9},
		{1 << 31, []uint64{1<<31 - 1}, 1 << 31},      // compared without a sign
		{5, []uint64{1 << 32, 1<<32 + 4}, 7<<32 + 5}, // and by the low half
		{1<<32 - 1, []uint64{1<<32 - 2}, 3<<32 - 1},
	} {
		t.Run(fmt.Sprint(c.value), func(t *testing.T) {
			quietly(t, NodeConfig{}, func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error {
				flag, signal := words[0], words[1]
				if err := r.Put(ctx, 1, data[1], data[0], PutOptions{After: flag, Value: c.value, Signal: signal}); err != nil {
					return err
				}
				if err := fill(data[0], 0, uint64(c.value)); err != nil { // after the Put
					return err
				}
				for _, v := range c.shut {
					if err := r.Store(flag, 0, v); err != nil {
						return err
					}
					synctest.Wait()
					if n, err := count(signal, 1); err != nil || n != 0 {
						return errors.Join(err, fmt.Errorf("it was carried with the flag at %d", v))
					}
				}
				return errors.Join(r.Store(flag, 0, c.open), r.Quiet(ctx, 1))
			}, func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error {
				if n, err := count(words[1], 1); err != nil || n != 1 {
					return errors.Join(err, fmt.Errorf("%d signals", n))
				}
				return check(data[1], 0, uint64(c.value))
			})
		})
	}
}

// What is wrong, and what the error must say of it.
func TestAWrongPutIsAPutErrorThatSaysWhy(t *testing.T) {
	t.Parallel()
	other := open(t, config(t, 2, NodeConfig{}))
	var foreign *heap.Tensor
	err := other.Run(context.Background(), func(ctx context.Context, r *Rank) (err error) {
		x, err := r.Zeros(ctx, heap.Uint8, 8)
		if r.ID() == 0 {
			foreign = x
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		ts, err := tensors(ctx, r, heap.Uint8, []int{8}, []int{8}, []int{2, 8})
		if err != nil {
			return err
		}
		x, gone, two := ts[0], ts[1], ts[2]
		word, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		if err := r.Free(ctx, gone); err != nil {
			return err
		}
		for _, c := range []struct {
			peer     int
			dst, src *heap.Tensor
			o        PutOptions
			says     string
			is       error
		}{
			{r.ID(), x, x, PutOptions{}, "another rank", nil},
			{-1, x, x, PutOptions{}, "another rank", nil},
			{2, x, x, PutOptions{}, "0 to 1", nil},
			{right(r), nil, x, PutOptions{}, "dst", ErrNoTensor},
			{right(r), x, nil, PutOptions{}, "src", ErrNoTensor},
			{right(r), x, gone, PutOptions{}, "src", nil},
			{right(r), x.Rows(0, 9), x, PutOptions{}, "dst", nil},
			{right(r), foreign, x, PutOptions{}, "dst", ErrForeign},
			{right(r), x, foreign, PutOptions{}, "src", ErrForeign},
			{right(r), x, x, PutOptions{Signal: foreign}, "Signal", ErrForeign},
			{right(r), x, x, PutOptions{After: foreign}, "After", ErrForeign},
			{right(r), x, x, PutOptions{Signal: x}, "64-bit words", nil},
			{right(r), x, x, PutOptions{After: x}, "64-bit words", nil},
			{right(r), x, x, PutOptions{After: word.Rows(0, 0)}, "After has no elements", nil},
			{right(r), x.Rows(0, 0), x.Rows(0, 0), PutOptions{}, "dst has no elements", nil},
			{right(r), x.Rows(0, 7), x, PutOptions{}, "dst has 7 rows of 1 bytes, src 8 of 1", nil},
			{right(r), x, two.Cols(0, 4), PutOptions{}, "src 2 of 4", nil}, // as many bytes, not as many rows
		} {
			err := r.Put(ctx, c.peer, c.dst, c.src, c.o)
			e, bad := expect[*PutError](err)
			if bad != nil {
				return bad
			}
			if e.Rank != r.ID() || e.Peer != c.peer || !strings.Contains(err.Error(), c.says) {
				return fmt.Errorf("%v (%+v) does not say %q", err, e, c.says)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				return fmt.Errorf("%v does not wrap %v", err, c.is)
			}
		}
		freed := r.Put(ctx, right(r), x, gone, PutOptions{})
		if _, bad := expect[*heap.FreedError](freed); bad != nil {
			return bad
		}
		for _, peer := range []int{r.ID(), -1, 2} {
			if _, bad := expect[*PutError](r.Quiet(ctx, peer)); bad != nil {
				return bad
			}
		}
		return nil
	})
}

// What puts in flight may hold is the queue's limit, to the byte.
func TestAPutBeyondTheRoomWaitsUnderItsContext(t *testing.T) {
	hostOnly(t, "rings between all ranks")
	quietly(t, NodeConfig{}, func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error {
		q := r.Queue(1)
		if err := r.Put(ctx, 1, data[1], data[0], PutOptions{After: words[0], Value: 1}); err != nil {
			return err
		}
		held, each := q.Snapshot().Puts, int64(sdma.LinearBytes)
		for i := int64(0); i < (q.Limits().Puts-held)/each; i++ {
			if err := r.Put(ended(ctx), 1, data[1], data[0], PutOptions{}); err != nil {
				return fmt.Errorf("put %d waited: %w", i, err)
			}
		}
		if err := wantIs(r.Put(ended(ctx), 1, data[1], data[0], PutOptions{}), context.Canceled); err != nil {
			return err
		}
		late := make(chan error, 1)
		go func() { late <- r.Put(ctx, 1, data[1], data[0], PutOptions{Signal: words[1]}) }()
		synctest.Wait()
		select {
		case err := <-late:
			return fmt.Errorf("the Put did not wait: %v", err)
		default:
		}
		return errors.Join(fill(data[0], 0, 4), r.Store(words[0], 0, 1), <-late, r.Quiet(ctx, 1))
	}, func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error {
		return errors.Join(r.Await(ctx, words[1], 0, 1), check(data[1], 0, 4))
	})
}

func TestAPutThatCanNeverFitIsRefusedAtOnce(t *testing.T) {
	only(t, "rings between all ranks", "host", "amd")
	t.Parallel()
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		ts, err := tensors(ctx, r, heap.Uint8, []int{4096}, []int{4096})
		if err != nil {
			return err
		}
		limit := r.Queue(right(r)).Limits().Puts
		r.device = smallCopies{r.device, 4096 / (limit/sdma.LinearBytes + 1)}
		full, bad := expect[*copyengine.CapacityError](r.Put(ctx, right(r), ts[1], ts[0], PutOptions{}))
		if bad == nil && (full.Limit != limit || full.Want <= limit) {
			return fmt.Errorf("the error's figures are wrong: %+v", full)
		}
		return bad
	})
}

func TestQuietWaitsForWhatWasPutBeforeIt(t *testing.T) {
	quietly(t, NodeConfig{}, func(ctx context.Context, r *Rank, data, words []*heap.Tensor) error {
		if err := r.Quiet(ended(ctx), 1); err != nil { // nothing was put
			return err
		}
		if err := r.Put(ctx, 1, data[1], data[0], PutOptions{After: words[0], Value: 1}); err != nil {
			return err
		}
		if err := wantIs(r.Quiet(ended(ctx), 1), context.Canceled); err != nil {
			return err
		}
		quiet := make(chan error, 1)
		go func() { quiet <- r.Quiet(ctx, 1) }()
		synctest.Wait()
		select {
		case err := <-quiet:
			return fmt.Errorf("it did not wait: %v", err)
		default:
		}
		// A later Put, which waits for another flag, is not its business.
		if err := r.Put(ctx, 1, data[1].Rows(1, 2), data[0].Rows(1, 2), PutOptions{After: words[2], Value: 1}); err != nil {
			return err
		}
		if err := errors.Join(fill(data[0], 0, 6), r.Store(words[0], 0, 1), <-quiet, check(data[1].At(1), 0, 6)); err != nil {
			return err
		}
		if err := wantIs(r.Quiet(ended(ctx), 1), context.Canceled); err != nil {
			return err
		}
		return errors.Join(r.Store(words[2], 0, 1), r.Quiet(ctx, 1))
	}, func(ctx context.Context, r *Rank, data, _ []*heap.Tensor) error {
		return check(data[1], 0, 6)
	})
}

// Freeing what a Put uses takes effect when the Put has been carried.
func TestFreedTensorsAreKeptUntilTheirPutIsCarried(t *testing.T) {
	t.Parallel()
	run(t, config(t, 2, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		flag, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		empty := r.World().Heap().Used()
		src, err := r.Zeros(ctx, heap.Uint8, 3000)
		if err != nil {
			return err
		}
		dst, err := r.Zeros(ctx, heap.Uint8, 3000)
		if err != nil {
			return err
		}
		signal, err := r.Zeros(ctx, heap.Uint64, 1)
		if err != nil {
			return err
		}
		full := r.World().Heap().Used()
		if r.ID() == 0 {
			if err := r.Put(ctx, 1, dst, src, PutOptions{After: flag, Value: 3, Signal: signal}); err != nil {
				return err
			}
		}
		for _, x := range []*heap.Tensor{src, dst, signal} {
			if err := r.Free(ctx, x); err != nil {
				return err
			}
		}
		if now := r.World().Heap().Used(); now != full {
			return fmt.Errorf("the heap went from %d to %d bytes while a Put is on its way", full, now)
		}
		fresh, err := r.Zeros(ctx, heap.Uint8, 4000) // what the Put writes is not in it
		if err != nil {
			return err
		}
		if r.ID() == 0 {
			if err := errors.Join(r.Store(flag, 0, 3), r.Quiet(ctx, 1)); err != nil {
				return err
			}
		}
		if err := errors.Join(r.Barrier(ctx), blank(fresh), r.Free(ctx, fresh)); err != nil {
			return err
		}
		if now := r.World().Heap().Used(); now != empty {
			return fmt.Errorf("the heap holds %d bytes, want %d", now, empty)
		}
		return nil
	})
}

// A queue that stops under puts tells each of those who put, once, and goes on.
func TestALostPutIsToldByQuietAndTheQueueGoesOn(t *testing.T) {
	hostOnly(t, "packets that a test sees")
	t.Parallel()
	boom := errors.New("boom")
	bad := make(chan uint64, 1) // the source of the copy to fail
	cfg := config(t, 2, NodeConfig{Intercept: func(_, _ copyengine.Endpoint, _ uint64, p *sdma.Packet) error {
		if p.Op != sdma.OpCopyLinear {
			return nil
		}
		select {
		case src := <-bad:
			if src == p.Copy.Src {
				return boom
			}
			bad <- src
		default:
		}
		return nil
	}})
	others := open(t, cfg) // shares the queues, and has put nothing
	run2(t, cfg, func(ctx context.Context, r *Rank) error {
		ts, err := tensors(ctx, r, heap.Uint8, []int{64}, []int{64})
		if err != nil {
			return err
		}
		if r.ID() == 1 {
			return errors.Join(r.Barrier(ctx), check(ts[1], 0, 2))
		}
		for range 3 {
			bad <- ts[0].Addr()
			if err := errors.Join(fill(ts[0], 0, 1), r.Put(ctx, 1, ts[1], ts[0], PutOptions{})); err != nil {
				return err
			}
			err = r.Quiet(ctx, 1)
			if _, wrong := expect[*copyengine.FaultError](err); wrong != nil {
				return wrong
			}
			if err := wantIs(err, boom); err != nil {
				return err
			}
			if err := errors.Join(r.Quiet(ctx, 1), others.ranks[0].Quiet(ctx, 1)); err != nil { // it was told
				return err
			}
		}
		return errors.Join(fill(ts[0], 0, 2), r.Put(ctx, 1, ts[1], ts[0], PutOptions{}), r.Quiet(ctx, 1), r.Barrier(ctx))
	})
	if n := others.ranks[0].Queue(1).Snapshot().Faults; n != 3 {
		t.Errorf("%d faults were counted, want 3", n)
	}
}

// run2 is run for a node that another world uses too.
func run2(t testing.TB, cfg Config, body func(ctx context.Context, r *Rank) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := Run(ctx, cfg, body); err != nil {
		t.Fatal(err)
	}
}

// Put, Quiet and Await are for any goroutine of a rank.
func TestManyGoroutinesOfARankPutAndWaitAtOnce(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 6, 30
	run(t, config(t, 3, NodeConfig{}), func(ctx context.Context, r *Rank) error {
		data, err := tensors(ctx, r, heap.Uint8, []int{goroutines, 40}, []int{goroutines, 40})
		if err != nil {
			return err
		}
		words, err := r.Zeros(ctx, heap.Uint64, goroutines)
		if err != nil {
			return err
		}
		errs := make(chan error, goroutines)
		for i := range goroutines {
			go func() {
				src, dst, signal := data[0].Rows(i, i+1), data[1].Rows(i, i+1), words.Rows(i, i+1)
				var err error
				for round := uint64(1); round <= rounds && err == nil; round++ {
					err = errors.Join(fill(src, r.ID(), round), r.Put(ctx, right(r), dst, src, PutOptions{Signal: signal}), r.Quiet(ctx, right(r)))
				}
				errs <- errors.Join(err, r.Await(ctx, signal, 0, rounds), check(dst, left(r), rounds))
			}()
		}
		for range goroutines {
			err = errors.Join(err, <-errs)
		}
		return err
	})
}
