package kernels_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
	"github.com/triggeredplans/sluice/kernels/internal/proof"
)

// wanted is what the built-in kernels must be seen to do.
var wanted = map[string]proof.Want{
	"fill":     {Marks: true},
	"tiled":    {Marks: true},
	"matmul":   {Marks: true},
	"script":   {Marks: true, Waits: true},
	"consumer": {Waits: true},
	"progress": {Waits: true},
	"evaluate": {},
}

// disassembly is an image as text. A code object's needs llvm-objdump; without
// it the text that was made when the image was built serves.
func disassembly(t *testing.T, arch, file string) string {
	t.Helper()
	if strings.HasSuffix(file, ".co") {
		if objdump, err := exec.LookPath("llvm-objdump-22"); err == nil {
			return mustOutput(t, objdump, "-d", file)
		}
		if filepath.Dir(file) != "embedded" {
			t.Skip("llvm-objdump-22 is not installed")
		}
		file = filepath.Join("testdata", "disassembly", arch+".dis")
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// SLUICE_IMAGES names a directory with rebuilt images to prove instead of the
// embedded ones.
func TestProofMarksAndWaitsKeepTheOrderInEveryImage(t *testing.T) {
	dir := os.Getenv("SLUICE_IMAGES")
	if dir == "" {
		dir = "embedded"
	}
	for _, arch := range kernels.ImageArchs() {
		file := filepath.Join(dir, arch+".co")
		if strings.HasPrefix(arch, "sm_") {
			file = filepath.Join(dir, arch+".ptx")
		}
		reports, err := proof.Check(arch, disassembly(t, arch, file), wanted)
		if err != nil {
			t.Error(err)
		}
		if len(reports) != len(wanted) {
			t.Errorf("%s: %d kernels, want %d", arch, len(reports), len(wanted))
		}
	}
}

func TestProofTheCommittedDisassemblyStandsForItsImage(t *testing.T) {
	for _, arch := range []string{"gfx90a", "gfx942", "gfx950"} {
		text, err := os.ReadFile(filepath.Join("testdata", "disassembly", arch+".dis"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proof.Check(arch, string(text), wanted); err != nil {
			t.Error(err)
		}
	}
}

// A mutant is the header with one step of the order taken out.
type mutant struct {
	name     string
	from, to string
	archs    []string // where the proof must miss the step
	litmus   bool     // where threads on the host must
}

var (
	amdArchs = []string{"gfx90a", "gfx942", "gfx950"}
	ptxArchs = []string{"sm_80", "sm_90"}
	mutants  = []mutant{
		{"mark_ready without its barrier", "    barrier();\n    if (leader()) detail::mark(", "    if (leader()) detail::mark(", slices.Concat(amdArchs, ptxArchs), true},
		{"mark_ready that does not wait for stores", "    detail::stores_done();\n    barrier();\n    if (leader()) detail::mark(", "    barrier();\n    if (leader()) detail::mark(", nil, false},
		{"no wait for stores at all", `asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)" ::: "memory")`, `asm volatile("" ::: "memory")`, amdArchs, false},
		{"a release that is not made, CDNA3", "buffer_wbl2 sc0 sc1\\n\\ts_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)", []string{"gfx942", "gfx950"}, false},
		{"a release that is not made, CDNA2", `"buffer_wbl2\n\ts_waitcnt vmcnt(0)"`, `"s_waitcnt vmcnt(0)"`, []string{"gfx90a"}, false},
		{"a write-back that is not waited for, CDNA3", "buffer_wbl2 sc0 sc1\\n\\ts_waitcnt vmcnt(0)", "buffer_wbl2 sc0 sc1", []string{"gfx942", "gfx950"}, false},
		{"a write-back that is not waited for, CDNA2", `"buffer_wbl2\n\ts_waitcnt vmcnt(0)"`, `"buffer_wbl2"`, []string{"gfx90a"}, false},
		{"an add that releases nothing, PTX", "atom.acq_rel.sys.add", "atom.relaxed.sys.add", ptxArchs, false},
		{"an add that releases nothing, host", "addr, 1ull, __ATOMIC_ACQ_REL", "addr, 1ull, __ATOMIC_RELAXED", nil, true},
		{"a gate whose store releases nothing, PTX", "st.release.sys", "st.relaxed.sys", ptxArchs, false},
		{"a gate whose store releases nothing, host", "addr, value, __ATOMIC_RELEASE", "addr, value, __ATOMIC_RELAXED", nil, true},
		{"a look that acquires nothing, AMD", "(Half)addr, __ATOMIC_ACQUIRE", "(Half)addr, __ATOMIC_RELAXED", amdArchs, false},
		{"a look that acquires nothing, PTX", "ld.acquire.sys", "ld.relaxed.sys", ptxArchs, false},
		{"a look that acquires nothing, host", "(unsigned *)addr, __ATOMIC_ACQUIRE", "(unsigned *)addr, __ATOMIC_RELAXED", nil, true},
	}
)

// write puts the mutant's header into a directory.
func (m mutant) write(t *testing.T) (dir string) {
	t.Helper()
	header, err := os.ReadFile("include/sluice.h")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(header), m.from); n != 1 {
		t.Fatalf("the header holds %q %d times: the mutant is out of date", m.from, n)
	}
	dir = t.TempDir()
	changed := strings.Replace(string(header), m.from, m.to, 1)
	if err := os.WriteFile(filepath.Join(dir, "sluice.h"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// compile builds a source against the header in dir and returns its text.
func compile(t *testing.T, arch, dir, source string) string {
	t.Helper()
	clang := tool(t, "clang++-22")
	out := filepath.Join(t.TempDir(), "image")
	args := []string{"-O3", "-I" + dir, "-o", out}
	if strings.HasPrefix(arch, "sm_") {
		mustOutput(t, clang, append(args, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch="+arch, "--cuda-feature=+ptx83", "-nocudainc", "-nocudalib", "-S", source)...)
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	objdump := tool(t, "llvm-objdump-22")
	mustOutput(t, clang, append(args, "-x", "hip", "--offload-device-only", "--offload-arch="+arch, "-nogpuinc", "-nogpulib", "--no-gpu-bundle-output", source)...)
	return mustOutput(t, objdump, "-d", out)
}

func TestProofAHeaderWithoutAnyStepOfTheOrderFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the kernels once for every mutant")
	}
	tool(t, "clang++-22")
	tool(t, "llvm-objdump-22")
	for _, m := range mutants {
		for _, arch := range m.archs {
			_, err := proof.Check(arch, compile(t, arch, m.write(t), "src/builtin.cpp"), wanted)
			for name, w := range wanted {
				touched := w.Marks
				if strings.Contains(m.name, "look") {
					touched = w.Waits
				}
				if touched && !violates(err, name) {
					t.Errorf("%s, %s: the proof of %s holds (error %v)", m.name, arch, name, err)
				}
			}
		}
	}
}

// violates reports whether one of the violations joined in err is the kernel's.
func violates(err error, kernel string) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	return ok && slices.ContainsFunc(joined.Unwrap(), func(e error) bool {
		var v *proof.Violation
		return errors.As(e, &v) && v.Kernel == kernel
	})
}

func TestProofAModuleOfAUsersOwnIsFollowedToo(t *testing.T) {
	for _, arch := range kernels.ImageArchs() {
		want := map[string]proof.Want{"peek": {Waits: true}, "snake_order": {}}
		if _, err := proof.Check(arch, compile(t, arch, "include", "test/probe.cpp"), want); err != nil {
			t.Error(err)
		}
	}
}

func TestProofTheHeaderAloneCompilesWithoutAWarning(t *testing.T) {
	clang := tool(t, "clang++-22")
	header, err := os.ReadFile("include/sluice.h")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.h")
	if err := os.WriteFile(file, header, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, language := range [][]string{
		{"-x", "hip", "-nogpuinc", "-nogpulib", "--offload-arch=gfx90a", "--offload-arch=gfx942", "--offload-arch=gfx950"},
		{"-x", "hip", "-nogpuinc", "-nogpulib"},
		{"-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80", "--cuda-gpu-arch=sm_90"},
		{"-x", "c++"},
		{"-x", "c"},
	} {
		out, err := output(t, clang, append(language, "-Wall", "-Wextra", "-fsyntax-only", file)...)
		if err != nil || out != "" {
			t.Errorf("%v: %v\n%s", language, err, out)
		}
	}
}
