//go:build cgo && linux

package fakerocm_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
	"github.com/triggeredplans/sluice/rank"
)

// line is a packet as the library's log has it.
func line(p *sdma.Packet) string {
	switch p.Op {
	case sdma.OpNOP:
		return fmt.Sprintf("nop %d", p.Size)
	case sdma.OpCopyLinear:
		return fmt.Sprintf("copy %x %x %d", p.Copy.Src, p.Copy.Dst, p.Copy.Width)
	case sdma.OpCopyWindow:
		w := p.Copy
		return fmt.Sprintf("window %x %d %x %d %d %d", w.Src, w.SrcPitch, w.Dst, w.DstPitch, w.Width, w.Height)
	case sdma.OpFence:
		return fmt.Sprintf("fence %x %x", p.Addr, p.Value)
	case sdma.OpTrap:
		return fmt.Sprintf("trap %x", p.Value)
	case sdma.OpPoll:
		q := p.Poll
		return fmt.Sprintf("poll %x %d %x %x %d %d", q.Addr, q.Func, q.Ref, q.Mask, q.Interval, q.Retries)
	case sdma.OpAtomic:
		a := p.Atomic
		return fmt.Sprintf("atomic %x %x %x %x", a.Addr, uint8(a.Op), a.Operand, a.Compare)
	case sdma.OpTimestamp:
		return fmt.Sprintf("timestamp %x", p.Addr)
	}
	return p.Op.String()
}

// logged reads a log: the packets that were executed on each ring, in order.
func logged(t *testing.T, path string) map[string][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rings := map[string][]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		ring, packet, _ := strings.Cut(s.Text(), " ")
		rings[ring] = append(rings[ring], packet)
	}
	return rings
}

// Everything that was written to rings in a gathering with windows, linear
// copies and padding, as this module decodes it, is what the library's decoder
// made of what its engines read.
func TestTheEngineSeesThePacketsThatWereWritten(t *testing.T) {
	const devices, ranks, n = 8, 4, 40
	both(t, devices, func(t *testing.T, _ fakerocm.Way) {
		log := filepath.Join(t.TempDir(), "packets")
		tell(t, devices, "log="+log)
		var mu sync.Mutex
		written := map[string][]string{}
		cfg := config(t, ranks, rank.NodeConfig{
			RingBytes: 4096, // so that it wraps
			Written: func(from, to copyengine.Endpoint, at uint64, p *sdma.Packet) {
				mu.Lock()
				defer mu.Unlock()
				pair := fmt.Sprint(from, to)
				written[pair] = append(written[pair], fmt.Sprintf("%d %s", at, line(p)))
			},
		})
		err := rank.Run(t.Context(), cfg, func(ctx context.Context, r *rank.Rank) error {
			if err := rounds(n)(ctx, r); err != nil {
				return err
			}
			g := &gather{Rank: r}
			return g.putAround(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		executed := map[string]int{}
		for _, packets := range logged(t, log) {
			executed[strings.Join(packets, "\n")]++
		}
		kinds := map[string]int{}
		for pair, packets := range written {
			if all := strings.Join(packets, "\n"); executed[all] == 0 {
				t.Errorf("what was written for %s is not what any engine executed:\n%s", pair, all)
			} else {
				executed[all]--
			}
			for _, p := range packets {
				kinds[strings.Fields(p)[1]]++
			}
		}
		if len(written) != ranks*(ranks-1) {
			t.Errorf("%d queues were written", len(written))
		}
		for _, kind := range []string{"poll", "window", "atomic", "fence", "copy", "nop"} {
			if kinds[kind] == 0 {
				t.Errorf("no %s was written: %v", kind, kinds)
			}
		}
	})
}

// raw is a queue to which a test writes packets itself.
type raw struct {
	*hip.SDMAQueue
	memory *hip.Memory
	at     int
}

func newRaw(t *testing.T) *raw {
	t.Helper()
	p, err := hip.Open("amd")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{}
	if r.memory, err = dev.Alloc(1 << 16); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.memory.Free)
	if r.SDMAQueue, err = dev.(hip.SDMADevice).NewSDMAQueue(1, 4096); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// send writes packets and rings the doorbell.
func (r *raw) send(b []byte) {
	r.at += copy(r.Ring[r.at:], b)
	r.Write.Store(uint64(r.at))
	r.Tell(uint64(r.at))
}

// await waits until the engine has read so much.
func (r *raw) await(t *testing.T, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := hip.NewWaiter().Await(ctx, r.Read, func(v uint64) bool { return v == uint64(count) }, nil); err != nil {
		t.Fatalf("the engine has read %d of %d bytes: %v", r.Read.Load(), count, err)
	}
}

func TestEveryPacketDoesWhatItIsMeantTo(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		r := newRaw(t)
		m, base := r.memory, r.memory.Addr()
		for i := range 256 {
			m.Bytes(0, 256)[i] = byte(i)
		}
		var b []byte
		add := func(next []byte, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			b = next
		}
		add(sdma.AppendNOP(b, 12))
		add(sdma.AppendCopyLinear(b, base+1, base+1024, 100))
		add(sdma.AppendCopyWindow(b, sdma.Window{Src: base + 3, Dst: base + 2048, SrcPitch: 16, DstPitch: 32, Width: 5, Height: 4}))
		add(sdma.AppendFence(b, base+4100, 0xfeed))
		add(sdma.AppendTrap(b, 7))
		add(sdma.AppendAtomic(b, sdma.Add64, base+4200, 1<<40))
		add(sdma.AppendAtomic(b, sdma.Add64Silent, base+4200, 1<<40))
		add(sdma.AppendAtomic(b, sdma.Add32, base+4212, 0xffffffff))
		add(sdma.AppendAtomic(b, sdma.Add32, base+4212, 3))
		add(sdma.AppendAtomic(b, sdma.CompareSwap64, base+4216, 9, 0))
		add(sdma.AppendAtomic(b, sdma.CompareSwap64, base+4216, 11, 8))
		add(sdma.AppendAtomic(b, sdma.CompareSwap32, base+4228, 5, 0))
		add(sdma.AppendAtomic(b, sdma.CompareSwap32, base+4228, 6, 4))
		add(sdma.AppendTimestamp(b, base+4240))
		r.send(b)
		r.await(t, len(b))
		for i := range int64(100) {
			if got := m.Bytes(1024+i, 1)[0]; got != byte(i+1) {
				t.Fatalf("byte %d of the linear copy is %d", i, got)
			}
		}
		for row := range int64(4) {
			for i := range int64(32) {
				want := byte(0)
				if i < 5 {
					want = byte(3 + 16*row + i)
				}
				if got := m.Bytes(2048+32*row+i, 1)[0]; got != want {
					t.Fatalf("byte %d of row %d of the window is %d, want %d", i, row, got, want)
				}
			}
		}
		le := binary.LittleEndian
		if got := le.Uint32(m.Bytes(4100, 4)); got != 0xfeed {
			t.Errorf("the fence wrote %#x", got)
		}
		for off, want := range map[int64]uint64{4200: 2 << 40, 4208: 2 << 32, 4216: 9, 4224: 5 << 32} {
			if got := m.Word(off).Load(); got != want {
				t.Errorf("the word at %d is %#x, want %#x", off, got, want)
			}
		}
		if m.Word(4240).Load() == 0 {
			t.Error("there is no timestamp")
		}
	})
}

func TestAPollComparesUnsignedUnderItsMask(t *testing.T) {
	both(t, 2, func(t *testing.T, _ fakerocm.Way) {
		r := newRaw(t)
		m, base := r.memory, r.memory.Addr()
		for i, c := range []struct {
			f          sdma.Func
			ref, mask  uint32
			shut, open uint32
		}{
			{sdma.GreaterEqual, 1 << 31, 0xffffffff, 1<<31 - 1, 1<<31 + 1},
			{sdma.Greater, 5, 0xffffffff, 5, 6},
			{sdma.Less, 5, 0xffffffff, 5, 4},
			{sdma.LessEqual, 5, 0xff, 6, 0x105},
			{sdma.Equal, 0x30, 0xf0, 0x4f, 0x3f},
			{sdma.NotEqual, 0, 0xffffffff, 0, 1 << 31},
		} {
			gate, through := int64(8*i), int64(1024+8*i)
			m.Word(gate).Store(uint64(c.shut) | 0xabcd<<32)
			b, err := sdma.AppendPoll(nil, sdma.Poll{Addr: base + uint64(gate), Func: c.f, Ref: c.ref, Mask: c.mask, Interval: 10, Retries: sdma.RetryForever})
			if err != nil {
				t.Fatal(err)
			}
			if b, err = sdma.AppendFence(b, base+uint64(through), 1); err != nil {
				t.Fatal(err)
			}
			r.send(b)
			// A second queue passes meanwhile, which shows that the first had its time.
			other := newRaw(t)
			if b, err = sdma.AppendFence(nil, other.memory.Addr(), 1); err != nil {
				t.Fatal(err)
			}
			other.send(b)
			other.await(t, len(b))
			if m.Word(through).Load() != 0 {
				t.Errorf("case %d: the poll passed a closed gate", i)
			}
			m.Word(gate).Store(uint64(c.open))
			r.await(t, r.at)
		}
	})
}

// What is no packet, and what the device does not reach, stops the queue and is
// reported where there is somebody to report it.
func TestABadPacketStopsItsQueueOnly(t *testing.T) {
	both(t, 2, func(t *testing.T, way fakerocm.Way) {
		word := binary.LittleEndian.AppendUint32
		outside, err := sdma.AppendFence(nil, 4096, 1)
		if err != nil {
			t.Fatal(err)
		}
		for name, bad := range map[string][]byte{
			"no packet":               word(nil, 0x7f),
			"an address of no memory": outside,
			"a packet that is cut":    word(nil, 0x2401),
			"a poll of a register":    append(word(nil, 0x8), make([]byte, 20)...),
		} {
			r, other := newRaw(t), newRaw(t)
			r.send(bad)
			good, err := sdma.AppendFence(nil, other.memory.Addr(), 1)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				other.send(good)
				other.await(t, other.at)
			}
			if r.Read.Load() != 0 {
				t.Errorf("%s: the engine went on", name)
			}
			if reported := r.Err() != nil; reported != (way == fakerocm.HSA) {
				t.Errorf("%s: the runtime says %v", name, r.Err())
			}
		}
	})
}
