package softengine

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

// fill writes bytes that differ from round to round. They repeat after a prime
// number of bytes, which no pitch is a multiple of: to make each anew would take
// most of the tests' time under the race detector.
func fill(b []byte, round uint64) {
	const period = 4099
	v := round*0x9e3779b97f4a7c15 + 1
	var word [8]byte
	for rest := b[:min(len(b), period)]; len(rest) > 0; rest = rest[copy(rest, word[:]):] {
		v ^= v << 13
		v ^= v >> 7
		v ^= v << 17
		binary.LittleEndian.PutUint64(word[:], v)
	}
	for n := period; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func TestASmallRingThatWrapsThousandsOfTimesDeliversEveryByte(t *testing.T) {
	const (
		gate, arrival    = 0, 64
		src, dst         = 4096, 8192
		linearAt, length = 2048, 200
	)
	r := newRig(t, 16<<10, sdma.MinRingBytes, 1<<40, nil)
	var chain sdma.Program
	for _, add := range []func(*sdma.Program) error{
		poll(r.addr(gate), 0),
		func(p *sdma.Program) error { return p.Copy(r.addr(src), r.addr(dst), 32, 8, 64, 96) },
		linear(r.addr(src+linearAt), r.addr(dst+linearAt), length),
		signal(r.addr(arrival), 1),
	} {
		if err := add(&chain); err != nil {
			t.Fatal(err)
		}
	}
	from, to := r.mem.Bytes(src, 4096), r.mem.Bytes(dst, 4096)
	wraps := uint64(2000)
	if testing.Short() {
		wraps = 100
	}
	for round := uint64(1); r.ring.Written() < 1<<40+wraps*sdma.MinRingBytes; round++ {
		chain.SetRound(uint32(round))
		if _, err := r.ring.Append(&chain); err != nil {
			t.Fatal(err)
		}
		r.ring.Ring()
		fill(from[:7*64+32], round)
		fill(from[linearAt:linearAt+length], ^round)
		r.mem.Word(gate).Store(round)
		r.until(r.mem.Word(arrival), func(v uint64) bool { return v == round })
		for row := range 8 {
			if !bytes.Equal(to[96*row:96*row+32], from[64*row:64*row+32]) {
				t.Fatalf("round %d: row %d differs", round, row)
			}
		}
		if !bytes.Equal(to[linearAt:linearAt+length], from[linearAt:linearAt+length]) {
			t.Fatalf("round %d: the linear copy differs", round)
		}
	}
}

func TestACopyWritesExactlyItsRows(t *testing.T) {
	const half = 1 << 16
	r := newRig(t, 2*half, 8<<20, 0, nil)
	src, dst := r.mem.Bytes(0, half), r.mem.Bytes(half, half)
	round := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		round++
		fill(r.mem.Bytes(0, 2*half), round)
		height := rapid.Int64Range(1, 40).Draw(rt, "height")
		width := rapid.Int64Range(1, 700).Draw(rt, "width")
		srcPitch := width + rapid.SampledFrom([]int64{0, 1, 64, 500}).Draw(rt, "source gap")
		dstPitch := width + rapid.SampledFrom([]int64{0, 3, 128}).Draw(rt, "destination gap")
		from := rapid.Int64Range(0, half-(height-1)*srcPitch-width).Draw(rt, "from")
		to := rapid.Int64Range(0, half-(height-1)*dstPitch-width).Draw(rt, "to")
		want := bytes.Clone(dst)
		for i := range height {
			copy(want[to+i*dstPitch:][:width], src[from+i*srcPitch:][:width])
		}
		r.drained(r.submit(func(p *sdma.Program) error {
			return p.Copy(r.addr(from), r.addr(half+to), width, height, srcPitch, dstPitch)
		}))
		if !bytes.Equal(dst, want) {
			rt.Fatalf("a copy of %d rows of %d bytes went wrong", height, width)
		}
	})
}

// Large windows of whole lines may be copied in another way than others.
func TestLargeWindowsAreCopiedAsSmallOnesAre(t *testing.T) {
	const half = 1 << 20
	b := make([]byte, 2*half+64)
	b = b[-uintptr(unsafe.Pointer(&b[0]))&63:][:2*half] // from a line's start on
	src, dst := b[:half], b[half:]
	round := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		round++
		fill(b, round)
		width := 64*rapid.Int64Range(1, 40).Draw(rt, "lines") + rapid.SampledFrom([]int64{0, 0, 0, 8}).Draw(rt, "more")
		rows := rapid.Int64Range(1, 128).Draw(rt, "rows")
		srcPitch := width + rapid.Int64Range(0, 1000).Draw(rt, "source gap")
		dstPitch := width + rapid.SampledFrom([]int64{0, 64, 640, 1}).Draw(rt, "destination gap")
		from := rapid.Int64Range(0, half-(rows-1)*srcPitch-width).Draw(rt, "from")
		to := rapid.SampledFrom([]int64{0, 64, 192, 7}).Draw(rt, "to")
		want := bytes.Clone(dst)
		for i := range rows {
			copy(want[to+i*dstPitch:][:width], src[from+i*srcPitch:][:width])
		}
		copyRows(dst[to:], src[from:], dstPitch, srcPitch, width, rows)
		if !bytes.Equal(dst, want) {
			rt.Fatalf("%d rows of %d bytes went wrong", rows, width)
		}
	})
}

func TestACopyOntoItselfIsNoError(t *testing.T) {
	r := newRig(t, 8<<10, 4096, 0, nil)
	b := r.mem.Bytes(0, 8<<10)
	fill(b, 3)
	want := bytes.Clone(b)
	copy(want[100:4196], want[:4096])
	r.drained(r.submit(linear(r.addr(0), r.addr(100), 4096)))
	if !bytes.Equal(b, want) {
		t.Error("one piece that overlaps is not moved as a whole")
	}
	r.drained(r.submit(func(p *sdma.Program) error { return p.Copy(r.addr(0), r.addr(16), 64, 20, 80, 80) }))
}

// TestNoPieceIsLongerThanAMiB looks at each yield how far a copy has come.
func TestNoPieceIsLongerThanAMiB(t *testing.T) {
	const n = 5<<20 + 12345
	for name, c := range map[string]struct{ width, height int64 }{
		"one run":      {n, 1},
		"wide rows":    {n / 3, 3},
		"narrow rows":  {1000, n / 1000},
		"64-byte rows": {64, n / 64},
	} {
		const gap = 32
		size := c.height * (c.width + gap)
		r := newRig(t, 2*size, 4096, 0, func(r *rig) {
			e := r.engine
			yields, before := 0, int64(0)
			e.yield = func() {
				yields++
				w := &e.packet.Copy
				done := moved(w.Dst, c.width, c.height, w.DstPitch)
				if done-before > 1<<20 || done == before {
					t.Errorf("%s: %d bytes were moved before yield %d, %d before the one before it", name, done, yields, before)
				}
				before = done
			}
			t.Cleanup(func() {
				if int64(yields) != c.width*c.height>>20 {
					t.Errorf("%s: %d yields in a copy of %d bytes", name, yields, c.width*c.height)
				}
			})
		})
		src := r.mem.Bytes(0, size)
		copy(src, bytes.Repeat([]byte{1}, len(src)))
		r.drained(r.submit(func(p *sdma.Program) error {
			return p.Copy(r.addr(0), r.addr(size), c.width, c.height, c.width+gap, c.width+gap)
		}))
		r.engine.Stop()
		if got := moved(r.addr(size), c.width, c.height, c.width+gap); got != c.width*c.height {
			t.Errorf("%s: %d bytes of %d were moved", name, got, c.width*c.height)
		}
	}
}

// moved is how many bytes of a window that was zero are not.
func moved(addr uint64, width, height, pitch int64) int64 {
	var h hold
	defer h.release()
	b, err := h.bytes(addr, (height-1)*pitch+width)
	if err != nil {
		panic(err)
	}
	n := int64(0)
	for row := range height {
		n += int64(bytes.Count(b[row*pitch:row*pitch+width], []byte{1}))
	}
	return n
}

func TestSmallCopiesYieldTogetherAfterAMiB(t *testing.T) {
	yields := 0
	r := newRig(t, 128<<10, 1<<20, 0, func(r *rig) { r.engine.yield = func() { yields++ } })
	var end uint64
	for range 64 {
		end = r.submit(linear(r.addr(0), r.addr(64<<10), 64<<10))
	}
	r.drained(end)
	r.engine.Stop()
	if yields != 4 {
		t.Errorf("64 copies of 64 KiB yielded %d times, want 4", yields)
	}
}

func TestAPacketAllocatesNothing(t *testing.T) {
	r := newRig(t, 128<<10, 64<<10, 0, nil)
	r.engine.Stop()
	r.engine.stopping.Store(false)
	var prog sdma.Program
	for _, add := range []func(*sdma.Program) error{
		poll(r.addr(0), 0), linear(r.addr(4096), r.addr(64<<10), 4096), signal(r.addr(64), 1), fence(r.addr(128), 5),
		func(p *sdma.Program) error { return p.Copy(r.addr(4096), r.addr(64<<10), 16, 4, 64, 80) },
	} {
		if err := add(&prog); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(200, func() {
		at := r.ring.Written()
		end, err := r.ring.Append(&prog)
		if err != nil {
			t.Fatal(err)
		}
		if at, err = r.engine.follow(at, end); err != nil || at != end {
			t.Fatalf("stopped at %d: %v", at, err)
		}
		r.ring.Ring()
	}); n != 0 {
		t.Errorf("a program of 5 packets allocates %v times", n)
	}
}
