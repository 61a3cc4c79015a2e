package hip_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakecuda"
	"github.com/triggeredplans/sluice/kernels"
)

// gpu is the first device of the nvidia platform: a GPU's, or the stand-in's.
func gpu(t *testing.T) hip.CopyDevice {
	t.Helper()
	if found, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(found) == 0 && os.Getenv(hip.CUDASetting) == "" {
		lib, err := fakecuda.Library()
		if errors.Is(err, fakecuda.ErrNoCompiler) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		os.Setenv(hip.CUDASetting, lib)
	}
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

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTheDriversLibraryIsToldByDescribe(t *testing.T) {
	gpu(t)
	p, err := hip.Open("nvidia")
	if err != nil {
		t.Fatal(err)
	}
	want := "libcuda.so.1 from the loader's path"
	if lib := os.Getenv(hip.CUDASetting); lib != "" {
		want = lib + " from " + hip.CUDASetting
	}
	if text := p.Describe(); !strings.Contains(text, want) {
		t.Errorf("%q is not in %q", want, text)
	}
}

// What is written to a device's memory is read back: bytes of any length and
// place, words far apart with what lies between them left alone, and zeros.
func TestADevicesMemoryHoldsWhatIsWritten(t *testing.T) {
	d := gpu(t)
	const size = 9<<20 + 4096
	m, err := d.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	if m.Mapped() {
		t.Error("it is mapped")
	}
	want := make([]byte, size)
	got := make([]byte, size)
	same := func(after string) {
		t.Helper()
		if err := m.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("after %s the memory is not what it must be", after)
		}
	}
	same("allocating") // zeros
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{1, 7, 4096, 64 << 10, 64<<10 + 1, 4 << 20, 4<<20 + 13, size} {
		off := rnd.Int64N(size - n + 1)
		for i := off; i < off+n; i++ {
			want[i] = byte(rnd.Uint32())
		}
		if err := m.WriteAt(want[off:off+n], off); err != nil {
			t.Fatal(err)
		}
		same("writing")
		n, off = min(n, size/2), rnd.Int64N(size/2)
		clear(want[off : off+n])
		if err := m.Clear(off, n); err != nil {
			t.Fatal(err)
		}
		same("clearing")
	}
	for _, stride := range []int64{8, 16, 64, 4096} {
		words := make([]uint64, 333)
		for i := range words {
			words[i] = rnd.Uint64()
			for b := range 8 {
				want[8192+int64(i)*stride+int64(b)] = byte(words[i] >> (8 * b))
			}
		}
		if err := m.StoreWords(8192, stride, words); err != nil {
			t.Fatal(err)
		}
		same("storing words")
		back := make([]uint64, len(words))
		if err := m.LoadWords(8192, stride, back); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(back, words) {
			t.Fatalf("words %d bytes apart are read back wrong", stride)
		}
	}
	var outside *hip.RangeError
	for _, err := range []error{m.ReadAt(got[:2], size-1), m.WriteAt(got[:2], -1), m.Clear(0, size+1), m.StoreWords(size-8, 8, make([]uint64, 2))} {
		if !errors.As(err, &outside) {
			t.Errorf("outside of the memory: got %v, want a *hip.RangeError", err)
		}
	}
}

func TestPinnedMemoryIsReachedInPlace(t *testing.T) {
	m, err := gpu(t).AllocHost(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	if !m.Mapped() || len(m.Bytes(0, 1<<20)) != 1<<20 {
		t.Fatal("it is not mapped")
	}
	if w, off, err := hip.Resolve(m.Addr()+24, 8); err != nil || w != m || off != 24 {
		t.Errorf("its address resolves to %d: %v", off, err)
	} else {
		w.Release()
	}
	m.Word(8).Store(5)
	if v, err := m.LoadWord(8); v != 5 || err != nil {
		t.Error(v, err)
	}
}

// A chain waits for its gates, in their order, and tells where it is.
func TestAChainWaitsForEachGateAndSignalsInOrder(t *testing.T) {
	d := gpu(t)
	src, err := d.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Free()
	dst, err := d.AllocHost(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Free()
	s, err := d.NewCopyStream("a test's", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const chunks = 3
	gate := func(c int) int64 { return 1024 + 64*int64(c) }
	for position, round := range []uint32{1<<31 - 1, 1 << 31, 1<<32 - 1} {
		for c := range chunks { // as plans have them
			if err := errors.Join(src.StoreWord(gate(c), uint64(round-1)), dst.StoreWord(gate(c), uint64(round-1)),
				src.WriteAt([]byte{byte(position), byte(c), byte(round)}, 16*int64(c))); err != nil {
				t.Fatal(err)
			}
		}
		var steps []hip.CopyStep
		for c := range chunks {
			steps = append(steps, hip.CopyStep{
				Gate: src.Addr() + uint64(gate(c)), Signal: dst.Addr() + uint64(gate(c)),
				Lines: []hip.CopyLine{{Src: src.Addr() + 16*uint64(c), Dst: dst.Addr() + 16*uint64(c), Bytes: 3}},
			})
		}
		chain, err := s.Build(steps)
		if err != nil {
			t.Fatal(err)
		}
		if chain.Commands() != 3*chunks+1 || chain.Batched() != chunks {
			t.Errorf("the chain takes %d commands and has %d copies", chain.Commands(), chain.Batched())
		}
		if _, err := s.Submit(chain, round, uint64(position)+1); err != nil {
			t.Fatal(err)
		}
		for _, c := range []int{1, 0, 2} { // chunk 1 waits for chunk 0
			if err := src.StoreWord(gate(c), uint64(round)); err != nil {
				t.Fatal(err)
			}
			if c == 1 {
				if v := dst.Word(gate(1)).Load(); v != uint64(round-1) {
					t.Errorf("chunk 1 is there before chunk 0: %d", v)
				}
				continue
			}
			at, err := dst.AwaitWord(soon(t), hip.NewWaiter(), gate(c), func(v uint64) bool { return v == uint64(round) })
			if err != nil {
				t.Fatal(at, err)
			}
			if b := dst.Bytes(16*int64(c), 3); !bytes.Equal(b, []byte{byte(position), byte(c), byte(round)}) {
				t.Errorf("round %d: chunk %d is %v", round, c, b)
			}
		}
		if err := hip.NewWaiter().Await(soon(t), s.Passed(), func(v uint64) bool { return v == uint64(position)+1 }, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // in memory that the device writes itself, and in the host's
		if err := errors.Join(s.Add(src.Addr()+512, 7), s.Add(dst.Addr()+512, 1<<33)); err != nil {
			t.Fatal(err)
		}
	}
	v, err := src.LoadWord(512)
	if w := dst.Word(512).Load(); err != nil || v != 21 || w != 3<<33 {
		t.Errorf("the words are %d and %d: %v", v, w, err)
	}
}

// A gate of a user's own may be any number below what is waited for.
func TestAGateFarBelowTheRoundStaysClosed(t *testing.T) {
	d := gpu(t)
	m, err := d.AllocHost(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	s, err := d.NewCopyStream("a test's", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	chain, err := s.Build([]hip.CopyStep{{Gate: m.Addr(), Signal: m.Addr() + 64, Anywhere: true}})
	if err != nil {
		t.Fatal(err)
	}
	const round = 3 << 30
	if _, err := s.Submit(chain, round, 1); err != nil {
		t.Fatal(err)
	}
	for _, v := range []uint64{1, 1 << 31, round - 1} { // 0 and 1 are "at least" it, cyclically
		m.Word(0).Store(v)
		short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		err := hip.NewWaiter().Await(short, s.Passed(), func(v uint64) bool { return v == 1 }, nil)
		cancel()
		if err == nil {
			t.Fatalf("the gate is open at %d", v)
		}
	}
	m.Word(0).Store(round)
	if err := hip.NewWaiter().Await(soon(t), s.Passed(), func(v uint64) bool { return v == 1 }, nil); err != nil {
		t.Fatal(err)
	}
}

func TestAModuleIsLoadedOnceAndSaysWhatIsWrongWithIt(t *testing.T) {
	d := gpu(t)
	image, err := kernels.BuiltinImage(d.Properties().Arch)
	if err != nil {
		t.Fatal(err)
	}
	one, err := d.Load(image.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.Load(image.Bytes)
	if err != nil || one != two {
		t.Errorf("it is loaded again: %v", err)
	}
	f, err := one.Function("script")
	if g, again := two.Function("script"); err != nil || again != nil || f != g || f.Name != "script" {
		t.Errorf("its kernel: %v, %v", err, again)
	}
	var missing *hip.CUDAError
	if _, err := one.Function("nosuch"); !errors.As(err, &missing) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	if err := errors.Join(one.Unload(), two.Unload()); err != nil {
		t.Error(err)
	}
	var bad *hip.ModuleError
	if _, err := d.Load([]byte("no module at all")); !errors.As(err, &bad) {
		t.Errorf("bytes that are no module: got %v, want a *hip.ModuleError", err)
	}
}

func TestAMissingLibraryIsSaidInOneLine(t *testing.T) {
	if os.Getenv("SLUICE_TEST_MISSING") != "" {
		_, err := hip.Open("nvidia")
		os.Stdout.WriteString("got: " + err.Error() + "\n")
		p, err := hip.Open("auto")
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("auto: " + p.Name() + "\n")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAMissingLibraryIsSaidInOneLine$")
	cmd.Env = append(os.Environ(), "SLUICE_TEST_MISSING=1", hip.CUDASetting+"=/nowhere/libcuda.so", hip.ROCmSetting+"=/nowhere", hip.PlatformSetting+"=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	if !strings.HasPrefix(lines[0], "got: ") || !strings.Contains(lines[0], "/nowhere/libcuda.so") || !strings.Contains(lines[0], hip.CUDASetting) {
		t.Errorf("the error is %q", lines[0])
	}
	if lines[1] != "auto: host" {
		t.Errorf("%q, want the host", lines[1])
	}
}
