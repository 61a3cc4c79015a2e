// Command env builds the emulated ROCm and prints the environment with which
// the amd platform uses it, for a shell:
//
//	eval $(go run ./internal/fakerocm/env -devices 8 -way kfd)
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/triggeredplans/sluice/internal/fakerocm"
)

func main() {
	devices := flag.Int("devices", 2, "how many: 2, 4 or 8")
	way := flag.String("way", "hsa", "how queues are made: hsa or kfd")
	told := flag.String("tell", "", "how it behaves")
	flag.Parse()
	env, err := fakerocm.Environment(fakerocm.Way(*way), *devices, *told)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var lines []string
	for k, v := range env {
		lines = append(lines, fmt.Sprintf("export %s='%s'", k, v))
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
}
