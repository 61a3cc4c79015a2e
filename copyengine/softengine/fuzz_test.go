package softengine

import (
	"runtime"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/copyengine/sdma"
)

// FuzzEngine puts bytes into a ring. Addresses of packets in them that are
// below a MiB count from the start of the engine's memory, so that many hit it.
func FuzzEngine(f *testing.F) {
	add := func(encode ...func([]byte) ([]byte, error)) {
		var b []byte
		for _, e := range encode {
			var err error
			if b, err = e(b); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(b)
	}
	add(func(b []byte) ([]byte, error) { return sdma.AppendCopyLinear(b, 64, 4096, 100) },
		func(b []byte) ([]byte, error) {
			return sdma.AppendCopyWindow(b, sdma.Window{Src: 0, Dst: 8192, SrcPitch: 64, DstPitch: 80, Width: 16, Height: 9})
		},
		func(b []byte) ([]byte, error) { return sdma.AppendAtomic(b, sdma.Add64, 64, 1) })
	add(func(b []byte) ([]byte, error) {
		return sdma.AppendPoll(b, sdma.Poll{Addr: 12, Func: sdma.GreaterEqual, Ref: 1, Mask: 1, Retries: sdma.RetryForever})
	},
		func(b []byte) ([]byte, error) { return sdma.AppendFence(b, 12, 1) })
	add(func(b []byte) ([]byte, error) { return sdma.AppendAtomic(b, sdma.CompareSwap32, 20, 3, 0) },
		func(b []byte) ([]byte, error) { return sdma.AppendTimestamp(b, 32) },
		func(b []byte) ([]byte, error) { return sdma.AppendTrap(b, 1) },
		func(b []byte) ([]byte, error) { return sdma.AppendNOP(b, 64) })
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), sdma.MinRingBytes)&^3]
		r := newRig(t, 64<<10, sdma.MinRingBytes, 0, func(r *rig) {
			r.engine.config.Intercept = func(_ uint64, p *sdma.Packet) error {
				p.Poll.Retries = min(p.Poll.Retries, 3) // nobody opens a gate here
				for _, addr := range []*uint64{&p.Copy.Src, &p.Copy.Dst, &p.Poll.Addr, &p.Atomic.Addr, &p.Addr} {
					if *addr < 1<<20 {
						*addr += r.addr(0)
					}
				}
				return nil
			}
		})
		r.raw(b)
		for start := time.Now(); r.read.Load() != uint64(len(b)) && r.engine.Err() == nil; runtime.Gosched() {
			if time.Since(start) > deadline {
				t.Fatalf("no end: %d of %d bytes are read", r.read.Load(), len(b))
			}
		}
		if r.engine.Err() != nil {
			if fault := r.fault(); fault.At != r.read.Load() || fault.Error() == "" {
				t.Errorf("%d bytes are read, fault at %d: %v", r.read.Load(), fault.At, fault)
			}
		}
		r.engine.Stop()
	})
}
