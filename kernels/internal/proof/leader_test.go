package proof_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/kernels/internal/proof"
)

// A leader marks in a region that the other waves skip, and opens the gate in
// another, as compilers make it of masked operations.
var (
	gfx950Leader = []string{
		"buffer_store_dwordx4 v[0:3], v4, s[4:7], 0 offen",
		"s_waitcnt vmcnt(0) lgkmcnt(0)",
		"s_barrier",
		"global_load_dwordx2 v[0:1], v2, s[2:3]",
		"s_and_saveexec_b64 s[0:1], s[8:9]",
		"s_cbranch_execz 3 @9",
		"buffer_wbl2 sc0 sc1",
		"s_waitcnt vmcnt(0)",
		"global_atomic_add_x2 v[0:1], v[2:3], v[4:5], off offset:16 sc0 sc1",
		"s_or_b64 exec, exec, s[0:1]",
		"s_waitcnt vmcnt(0)",
		"s_and_saveexec_b64 s[0:1], vcc",
		"s_cbranch_execz 1 @14",
		"global_atomic_swap_x2 v[0:1], v[2:3], off sc1",
		"global_atomic_add v[0:1], v2, off offset:16 sc1",
		"s_endpgm",
	}
	sm90Leader = []string{
		"@%p1 st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };",
		"bar.sync 0;",
		"@%p2 atom.global.sys.acq_rel.add.u64 %rd3, [ %rd4 + 0 ], %rd5;",
		"@%p3 atom.global.sys.release.exch.b64 %rd6, [ %rd7 + 0 ], %rd8;",
		"@%p4 atom.global.sys.relaxed.add.u32 %r6, [ %rd7 + 0 ], %r8;",
		"ret;",
	}
	marks = map[string]proof.Want{"k": {Marks: true}}
)

func checkMarks(arch string, lines []string) error { return checkFor(marks, arch, lines) }

func TestALeaderMayMarkAndOpenTheGateInRegionsThatOtherWavesSkip(t *testing.T) {
	for arch, code := range map[string][]string{"gfx942": gfx950Leader, "gfx950": gfx950Leader, "sm_90": sm90Leader} {
		if err := checkMarks(arch, code); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func TestEveryStepOfALeaderIsNeeded(t *testing.T) {
	needed(t, marks, "gfx950", gfx950Leader, 1, 2, 6, 7, 8, 10, 13)
	needed(t, marks, "sm_90", sm90Leader, 1, 2, 3)
}

func TestAGateThatIsTooWeakOrUnmarkedIsRefused(t *testing.T) {
	for _, c := range []struct{ arch, from, to string }{
		{"gfx950", "v[2:3], off sc1", "v[2:3], off"}, // at this device's scope
		{"gfx950", "s_cbranch_execz 3 @9", "s_cbranch_vccz 3 @9"},
		{"gfx950", "offset:16 sc0 sc1", "offset:16 sc0"},
		{"sm_90", "release.exch", "relaxed.exch"},
		{"sm_90", "sys.release.exch", "gpu.release.exch"},
		{"sm_90", "acq_rel.add", "release.add"},
	} {
		weakened(t, marks, c.arch, map[string][]string{"gfx950": gfx950Leader, "sm_90": sm90Leader}[c.arch], c.from, c.to)
	}
}

func TestAStoreBetweenAMarkAndItsGateIsSeen(t *testing.T) {
	code := slices.Insert(slices.Clone(gfx950Leader), 11, "global_store_dword v0, v1, off")
	for i, l := range code { // branches lead a line further
		code[i] = strings.Replace(l, "@14", "@15", 1)
	}
	refused(t, marks, "gfx950", code, "with a store before the gate")
}

// Blocks that were pasted in have labels and predicates of their own.
func TestLabelsAndPredicatesOfABlockAreItsOwn(t *testing.T) {
	block := func(body ...string) []string {
		return slices.Concat([]string{"{", ".reg .pred done;", "again:"}, body, []string{"@!done bra.uni again;", "}"})
	}
	wait := block("mbarrier.try_wait.parity.shared.b64 done, [%r1], %r2;")
	good := slices.Concat([]string{".loc 1 80 29", "st.global.u64 [%rd1], %rd2;"}, wait, []string{".loc 1 81 5", "bar.sync 0;"},
		sm90Leader[2:4], wait, []string{"ret;"})
	if err := checkMarks("sm_90", good); err != nil {
		t.Error(err)
	}
	// The second block's loop comes back to its own label, behind the barrier.
	bad := slices.Concat([]string{"st.global.u64 [%rd1], %rd2;", "bar.sync 0;"}, sm90Leader[2:4],
		block("@done atom.global.sys.acq_rel.add.u64 %rd3, [ %rd4 + 0 ], %rd5;", "st.global.u64 [%rd1], %rd2;"), []string{"ret;"})
	var v *proof.Violation
	if err := checkMarks("sm_90", bad); !errors.As(err, &v) || !strings.Contains(v.Instruction, "atom.global.sys.acq_rel.add") {
		t.Errorf("a mark in a loop without a barrier: error %v, want a violation", err)
	}
	var p *proof.ParseError
	if _, err := proof.Check("sm_90", ptx(slices.Concat(wait, []string{"bra again;", "ret;"})...), nil); !errors.As(err, &p) {
		t.Errorf("a branch into a block: error %v, want a parse error", err)
	}
}
