package softengine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// handoverDir is where handover has built a program, for TestMain to remove.
var handoverDir string

// handover is the folder of a program built with the race detector, once in a
// process; it is empty without cgo.
var handover = sync.OnceValues(func() (string, error) {
	cgo, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	if err != nil || strings.TrimSpace(string(cgo)) != "1" {
		return "", err
	}
	if handoverDir, err = os.MkdirTemp("", "sluice-handover"); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-race", "-o", handoverDir, "./testdata/handover").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return handoverDir, nil
})

func TestAWriteBehindTheGateIsADataRaceAndAnOrderedOneIsNot(t *testing.T) {
	dir, err := handover()
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		t.Skip("the race detector needs cgo")
	}
	for _, late := range []bool{false, true} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "handover"), fmt.Sprintf("-late=%v", late)).CombinedOutput()
		found := strings.Contains(string(out), "DATA RACE")
		if !strings.Contains(string(out), "delivered") {
			t.Fatalf("late %v: the program did not run to its end: %v\n%s", late, err, out)
		}
		if found != late || (err != nil) != late {
			t.Errorf("late %v: a race was reported: %v; error: %v\n%s", late, found, err, out)
		}
		if late && !strings.Contains(string(out), "softengine.(*Engine).move") {
			t.Errorf("the race is not with the engine's copy:\n%s", out)
		}
	}
}
