package kernels_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The order of data before its gate rests on three steps. Without any one of
// them the rules' tests must fail, or they would prove nothing.
func TestARuleFailsWithoutAnyStepThatOrdersDataBeforeItsGate(t *testing.T) {
	if !raceEnabled {
		t.Skip("the mutants are data races, and this build has no race detector")
	}
	if testing.Short() {
		t.Skip("it builds this package once for every mutant")
	}
	for _, mutant := range []string{"nobarrier", "plainadd", "plainstore"} {
		t.Run(mutant, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", "test", "-race", "-count=1", "-run", "^TestRule", "-tags", "mutant_"+mutant, ".")
			cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1")
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			if ctx.Err() != nil {
				t.Fatalf("%v after %d bytes of output", ctx.Err(), len(out))
			}
			if err == nil {
				t.Fatal("every rule's test passes")
			}
			if !bytes.Contains(out, []byte("DATA RACE")) {
				t.Fatalf("it fails without a data race:\n%s", out)
			}
		})
	}
}
