package python

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triggeredplans/sluice/kernels/internal/proof"
)

// wanted is what a kernel must be seen to do.
var wanted = map[string]proof.Want{
	"consume":    {Waits: true},
	"evaluate":   {},
	"gemm":       {Marks: true},
	"gluon_gemm": {Marks: true},
}

// text is a file of testdata.
func text(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkOne proves one kernel, whose entry its description names.
func checkOne(t *testing.T, name, target, code string) error {
	t.Helper()
	_, err := proof.Check(target, code, map[string]proof.Want{describe(t, name, target).Entry: wanted[name]})
	return err
}

func TestProofMarksAndWaitsKeepTheOrderInEveryBuiltKernel(t *testing.T) {
	for _, name := range names {
		for _, target := range targets {
			code := ""
			if target == "sm_90" {
				b, err := fs.ReadFile(Built(), describe(t, name, target).Text.File)
				if err != nil {
					t.Fatal(err)
				}
				code = string(b)
			} else {
				code = text(t, "disassembly", name+"."+target+".dis")
			}
			if err := checkOne(t, name, target, code); err != nil {
				t.Error(err)
			}
		}
	}
}

// The committed disassembly must be that of the binaries.
func TestProofAMDsBinariesThemselvesKeepTheOrder(t *testing.T) {
	objdump, err := exec.LookPath("llvm-objdump-22")
	if err != nil {
		t.Skip("llvm-objdump-22 is not installed")
	}
	for _, name := range names {
		for _, target := range targets {
			if target == "sm_90" {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			out, err := exec.CommandContext(ctx, objdump, "-d", filepath.Join("built", describe(t, name, target).Binary.File)).CombinedOutput()
			cancel()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if err := checkOne(t, name, target, string(out)); err != nil {
				t.Error(err)
			}
		}
	}
}

// The kernels were built once more with a view whose mark_ready has no barrier.
func TestProofAViewWithoutTheBarrierFails(t *testing.T) {
	for _, name := range []string{"gemm", "gluon_gemm"} {
		for _, target := range targets {
			extension := ".dis"
			if target == "sm_90" {
				extension = ".ptx"
			}
			err := checkOne(t, name, target, text(t, "nobarrier", name+"."+target+extension))
			var v *proof.Violation
			if !errors.As(err, &v) || !strings.Contains(v.Rule, "a mark is counted early") {
				t.Errorf("%s for %s: error %v, want a mark that is counted early", name, target, err)
			}
		}
	}
}
