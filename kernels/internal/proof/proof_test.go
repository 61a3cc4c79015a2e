package proof_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/kernels/internal/proof"
)

// amd lays lines out as llvm-objdump does, four bytes each. "@n" in a branch
// is line n.
func amd(lines ...string) string {
	var b strings.Builder
	b.WriteString("0000000000001000 <k>:\n")
	for i, l := range lines {
		op, to, branch := strings.Cut(l, "@")
		fmt.Fprintf(&b, "\t%s // %012X: 00000000", op, 0x1000+4*i)
		if branch {
			var n int
			fmt.Sscan(to, &n)
			fmt.Fprintf(&b, " <k+0x%x>", 4*n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// ptx wraps statements in an entry.
func ptx(lines ...string) string {
	return ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n" + strings.Join(lines, "\n") + "\n}\n"
}

var (
	gfx942 = []string{
		"global_store_dwordx2 v[0:1], v[2:3], off",
		"s_waitcnt vmcnt(0) lgkmcnt(0)",
		"s_barrier",
		"s_and_saveexec_b64 s[0:1], vcc",
		"s_cbranch_execz 9 @11",
		"buffer_wbl2 sc0 sc1",
		"s_waitcnt vmcnt(0)",
		"global_atomic_add_x2 v[0:1], v[2:3], v[4:5], off sc0 sc1",
		"s_waitcnt vmcnt(0)",
		"s_cbranch_vccz 1 @11",
		"global_store_dwordx2 v[0:1], v[2:3], off sc0 sc1",
		"global_load_dword v0, v[0:1], off sc0 sc1",
		"s_waitcnt vmcnt(0)",
		"s_cbranch_vccz 65530 @11",
		"buffer_inv sc0 sc1",
		"ds_write_b64 v0, v[4:5]",
		"s_barrier",
		"global_load_dword v0, v[0:1], off",
		"s_endpgm",
	}
	gfx90a = []string{
		"global_store_dwordx2 v[0:1], v[2:3], off",
		"s_waitcnt vmcnt(0)",
		"s_barrier",
		"s_cbranch_execz 9 @10",
		"buffer_wbl2",
		"s_waitcnt vmcnt(0)",
		"global_atomic_add_x2 v[0:1], v[2:3], v[4:5], off glc",
		"s_waitcnt vmcnt(0)",
		"s_cbranch_vccz 1 @10",
		"global_store_dwordx2 v[0:1], v[2:3], off",
		"global_load_dword v0, v[0:1], off glc",
		"s_waitcnt vmcnt(0)",
		"buffer_invl2",
		"buffer_wbinvl1_vol",
		"s_barrier",
		"global_load_dword v0, v[0:1], off",
		"s_endpgm",
	}
	sm90 = []string{
		"st.global.u64 [%rd1], %rd2;",
		"bar.sync 0;",
		"@%p1 bra $L_other;",
		"atom.acq_rel.sys.add.u64 %rd3, [%rd4], 1;",
		"@%p2 bra $L_other;",
		"st.release.sys.u64 [%rd5], %rd6;",
		"$L_other:",
		"ld.relaxed.sys.u32 %r1, [%rd7];",
		"@%p3 bra $L_other;",
		"ld.acquire.sys.u32 %r1, [%rd7];",
		"st.shared.b64 [word], %rd8;",
		"barrier.sync 0;",
		"ld.global.u64 %rd9, [%rd1];",
		"ret;",
	}
	both = map[string]proof.Want{"k": {Marks: true, Waits: true}}
)

func check(arch string, lines []string) error { return checkFor(both, arch, lines) }

func checkFor(want map[string]proof.Want, arch string, lines []string) error {
	text := amd(lines...)
	if strings.HasPrefix(arch, "sm_") {
		text = ptx(lines...)
	}
	_, err := proof.Check(arch, text, want)
	return err
}

// refused checks that code breaks the order.
func refused(t *testing.T, want map[string]proof.Want, arch string, code []string, how string) {
	t.Helper()
	var v *proof.Violation
	if err := checkFor(want, arch, code); !errors.As(err, &v) {
		t.Errorf("%s %s: error %v, want a violation", arch, how, err)
	}
}

// needed checks that the order is broken without any of the steps, which are
// lines of code.
func needed(t *testing.T, want map[string]proof.Want, arch string, code []string, steps ...int) {
	t.Helper()
	for _, i := range steps {
		without := slices.Clone(code)
		without[i] = ""
		if strings.HasPrefix(arch, "gfx") {
			without[i] = "s_nop 0" // keeps the addresses
		}
		refused(t, want, arch, without, fmt.Sprintf("without %q", code[i]))
	}
}

// weakened checks that the order is broken with to for from, wherever that
// stands.
func weakened(t *testing.T, want map[string]proof.Want, arch string, code []string, from, to string) {
	t.Helper()
	code = slices.Clone(code)
	found := false
	for i, l := range code {
		found = found || strings.Contains(l, from)
		code[i] = strings.Replace(l, from, to, 1)
	}
	if !found {
		t.Errorf("%s: no line has %q", arch, from)
	}
	refused(t, want, arch, code, fmt.Sprintf("with %q for %q", to, from))
}

func TestTheOrderOfAMarkAndAWaitIsAccepted(t *testing.T) {
	for arch, code := range map[string][]string{"gfx942": gfx942, "gfx950": gfx942, "gfx90a": gfx90a, "sm_90": sm90} {
		if err := check(arch, code); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryStepOfTheOrderIsNeeded(t *testing.T) {
	needed(t, both, "gfx942", gfx942, 1, 2, 5, 6, 7, 8, 10, 14)
	needed(t, both, "gfx90a", gfx90a, 1, 2, 4, 5, 6, 7, 9, 12, 13)
	needed(t, both, "sm_90", sm90, 1, 3, 5, 9)
}

func TestAStepThatIsTooWeakIsRefused(t *testing.T) {
	for _, c := range []struct{ arch, from, to string }{
		{"gfx942", "buffer_wbl2 sc0 sc1", "buffer_wbl2 sc1"},
		{"gfx942", "off sc0 sc1", "off sc0"},
		{"gfx942", "buffer_inv sc0 sc1", "buffer_inv sc1"},
		{"gfx942", "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)"},
		{"gfx942", "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"},
		{"sm_90", "atom.acq_rel", "atom.relaxed"},
		{"sm_90", "atom.acq_rel", "atom.release"},
		{"sm_90", "atom.acq_rel.sys", "atom.acq_rel.gpu"},
		{"sm_90", "st.release.sys", "st.release.gpu"},
		{"sm_90", "st.release.sys", "st.relaxed.sys"},
		{"sm_90", "ld.acquire.sys", "ld.acquire.gpu"},
	} {
		weakened(t, both, c.arch, map[string][]string{"gfx942": gfx942, "sm_90": sm90}[c.arch], c.from, c.to)
	}
}

func TestAStoreOnAnyPathToAMarkIsSeen(t *testing.T) {
	for arch, code := range map[string][]string{
		"gfx942": {
			"s_waitcnt vmcnt(0)",
			"s_cbranch_vccz 1 @3", // the wait, then perhaps a store, then the barrier
			"global_store_dword v0, v1, off",
			"s_barrier",
			"buffer_wbl2 sc0 sc1",
			"s_waitcnt vmcnt(0)",
			"global_atomic_add_x2 v[0:1], v[2:3], v[4:5], off sc0 sc1",
			"s_endpgm",
		},
		"sm_80": { // a table of branches, one of which skips the barrier
			"$L_table: .branchtargets",
			"\t$L_barrier,",
			"\t$L_mark;",
			"st.global.u64 [%rd1], %rd2;",
			"brx.idx %r1, $L_table;",
			"$L_barrier:",
			"bar.sync 0;",
			"$L_mark:",
			"atom.acq_rel.sys.add.u64 %rd3, [%rd4], 1;",
			"ret;",
		},
		"sm_90": {
			"$L_again:",
			"bar.sync 0;",
			"$L_inner:",
			"atom.acq_rel.sys.add.u64 %rd3, [%rd4], 1;",
			"st.global.u64 [%rd1], %rd2;",
			"@%p1 bra $L_inner;", // comes back without a barrier
			"ret;",
		},
	} {
		text := amd(code...)
		if strings.HasPrefix(arch, "sm_") {
			text = ptx(code...)
		}
		_, err := proof.Check(arch, text, nil)
		var v *proof.Violation
		if !errors.As(err, &v) {
			t.Errorf("%s: error %v, want a violation", arch, err)
		}
	}
}

func TestAMissingKernelAndATextThatCannotBeReadAreErrors(t *testing.T) {
	var v *proof.Violation
	if _, err := proof.Check("gfx942", amd(gfx942...), map[string]proof.Want{"other": {}}); !errors.As(err, &v) {
		t.Errorf("a missing kernel: error %v", err)
	}
	var p *proof.ParseError
	for arch, text := range map[string]string{
		"gfx942": amd("s_branch 9 @1000", "s_endpgm"),
		"gfx950": "0000000000001000 <k>:\n",
		"sm_90":  ptx("bra $L_nowhere;", "ret;"),
		"sm_80":  ptx(""),
	} {
		if _, err := proof.Check(arch, text, nil); !errors.As(err, &p) {
			t.Errorf("%s: error %v, want a parse error", arch, err)
		}
	}
}
