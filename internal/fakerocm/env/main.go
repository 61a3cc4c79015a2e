// Command env builds the emulated ROCm and prints the environment with which
// every program and test of this module runs on it, for a shell:
//
//	eval "$(go run ./internal/fakerocm/env -devices 8 -way kfd)"
//	go test ./...
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakerocm"
)

func main() {
	devices := flag.Int("devices", 2, "how many: 2, 4 or 8")
	way := flag.String("way", "hsa", "how queues are made: hsa or kfd")
	told := flag.String("tell", "", "how it behaves")
	flag.Parse()
	if err := check(fakerocm.Way(*way), *devices); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	env, err := fakerocm.Environment(fakerocm.Way(*way), *devices, *told)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	env[hip.PlatformSetting] = "amd"
	var lines []string
	for k, v := range env {
		lines = append(lines, fmt.Sprintf("export %s='%s'", k, v))
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
}

// check refuses what there is no topology and no library for.
func check(way fakerocm.Way, devices int) error {
	if way != fakerocm.HSA && way != fakerocm.KFD {
		return fmt.Errorf("env: -way is %q; it is %s or %s", way, fakerocm.HSA, fakerocm.KFD)
	}
	if _, err := os.Stat(fakerocm.Sysfs(devices)); err != nil {
		return fmt.Errorf("env: -devices is %d; there are topologies of 2, 4 and 8", devices)
	}
	return nil
}
