package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakecuda"
)

// patience bounds what must not hang.
const patience = 120 * time.Second

// real says that the tests run on GPUs.
var real bool

func TestMain(m *testing.M) {
	if err := choose(); errors.Is(err, fakecuda.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(0)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// choose takes the GPUs of this machine, or devices of the stand-in.
func choose() error {
	if os.Getenv(hip.CUDASetting) == "" {
		if found, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(found) == 0 {
			lib, err := fakecuda.Library()
			if err != nil {
				return err
			}
			os.Setenv(hip.CUDASetting, lib)
		}
	}
	real = !strings.Contains(os.Getenv(hip.CUDASetting), "fakecuda")
	if !real && os.Getenv(fakeDevices) == "" {
		os.Setenv(fakeDevices, "3")
	}
	return nil
}

// fakeDevices tells the stand-in how many devices it has.
const fakeDevices = "FAKECUDA_DEVICES"

// devices is how many GPUs there are; a test of several is skipped where there
// is one.
func devices(t testing.TB) int {
	t.Helper()
	p, err := hip.Open("nvidia")
	if err != nil {
		t.Skip(err)
	}
	if p.Devices() < 2 {
		t.Skipf("%d device; this is about several", p.Devices())
	}
	return p.Devices()
}

// choice is a value for GPUs and one for the stand-in.
func choice[T any](gpus, standIn T) T {
	if real {
		return gpus
	}
	return standIn
}
