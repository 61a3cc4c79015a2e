package main

import (
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/example/exampletest"
	"github.com/triggeredplans/sluice/internal/fakerocm"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func program() exampletest.Program {
	var p prober
	return exampletest.Program{Name: name, What: what, Flags: p.flags, Run: p.run}
}

// emulated has the amd platform be the emulated one, behaving as told.
func emulated(t *testing.T, devices int, told string) {
	t.Helper()
	if _, err := fakerocm.Now(); err == fakerocm.ErrNoCgo {
		t.Skip(err)
	}
	if c := fakerocm.Missing(); c != "" {
		t.Skipf("the emulated ROCm is built with %s, which is not here", c)
	}
	env, err := fakerocm.Environment(fakerocm.HSA, devices, told)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range env {
		t.Setenv(k, v)
	}
	if err := fakerocm.Tell(env[fakerocm.Setting]); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPairIsTriedAndVerified(t *testing.T) {
	for _, args := range []string{
		"-platform host -ranks 4 -rounds 3",
		"-platform host -ranks 2 -rounds 1 -bytes 1024",
		"-platform host -ranks 3 -rounds 2 -bytes 300001",
	} {
		t.Run(args, func(t *testing.T) {
			var r report
			program().JSON(t, args, &r)
			n := strings.Count(args, "-ranks 4")*12 + strings.Count(args, "-ranks 2")*2 + strings.Count(args, "-ranks 3")*6
			if len(r.Pairs) != n || !r.AllRight || !strings.HasPrefix(r.Platform, "host") || r.System == "" {
				t.Errorf("the report is wrong: %+v", r)
			}
			for _, p := range r.Pairs {
				if p.Error != "" || p.Engine == "" || min(p.Fence, p.Copy, p.Window, p.Chunk) <= 0 {
					t.Errorf("the pair is wrong: %+v", p)
				}
			}
		})
	}
}

func TestAPairThatFailsIsReportedBesideThoseThatWork(t *testing.T) {
	emulated(t, 8, "dead=1:10") // which carries 1 to 3
	o := program().With("-platform amd -ranks 4 -rounds 2 -json")
	o.Failed(t, 1, name, "1 of 12 pairs do not work")
	var r report
	o.Decode(t, &r)
	for _, p := range r.Pairs {
		if bad := p.From == "amd:1" && p.To == "amd:3"; bad != strings.Contains(p.Error, "SDMA engine 10 of amd:1") || bad == (p.Chunk > 0) {
			t.Errorf("the pair is wrong: %+v", p)
		}
	}
	if r.AllRight || len(r.Pairs) != 12 || len(r.Devices) != 4 || r.Devices[2].Arch != "gfx942" {
		t.Errorf("the report is wrong: %+v", r)
	}
}

func TestAPersonReadsWhichEngineCarriesWhichPair(t *testing.T) {
	emulated(t, 2, "")
	o := program().With("-platform amd -ranks 2 -rounds 2")
	for _, part := range []string{"amd:0→amd:1", "SDMA engine 14 of amd:0, recommended for the link", "HIP 7.0, 2 devices", "gfx942", "every byte verified    true"} {
		if !strings.Contains(o.Stdout, part) {
			t.Errorf("it does not say %q:\n%s", part, o.Stdout)
		}
	}
}

func TestWithoutROCmOneLineSaysWhatIsMissing(t *testing.T) {
	t.Setenv(hip.ROCmSetting, t.TempDir())
	program().With("-platform amd").Failed(t, 2, name, "libamdhip64")
}

func TestBadFlagsEndWithOneClearLineAndStatus2(t *testing.T) {
	for args, says := range map[string]string{
		"-bytes 0":         "-bytes: it is a whole number from 1024",
		"-bytes 999999999": "to 67108864",
		"-ranks 65":        "-ranks",
		"extra":            `"extra"`,
	} {
		program().With(args).Failed(t, 2, name, says)
	}
}

func TestTheProcessEndsWithTheStatusOfTheRun(t *testing.T) {
	exampletest.Status(t, "-platform host -ranks 2 -rounds 1", 0)
	exampletest.Status(t, "-bytes 1", 2)
}
