package softengine

import (
	"os/exec"
	"strings"
	"testing"
)

func TestAWriteBehindTheGateIsADataRaceAndAnOrderedOneIsNot(t *testing.T) {
	cgo, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(cgo)) != "1" {
		t.Skip("the race detector needs cgo")
	}
	for _, late := range []bool{false, true} {
		args := []string{"run", "-race", "./testdata/handover"}
		if late {
			args = append(args, "-late")
		}
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
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
