package fakerocm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Setting is the environment variable that says how the library behaves when it
// is first used: words of the form key=value, as for Tell.
const Setting = "FAKEROCM"

// Environment is the variables that have a process's amd platform use the
// library: so many devices, queues made one way, and behaving as told.
func Environment(way Way, devices int, told string) (map[string]string, error) {
	dir, err := Build(way)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"SLUICE_ROCM":  dir,
		"SLUICE_KFD":   filepath.Join(dir, hipName),
		"SLUICE_SYSFS": Sysfs(devices),
		Setting:        strings.TrimSpace(fmt.Sprintf("devices=%d %s", devices, told)),
	}, nil
}

// Use has the amd platform of this process use the library from its next
// opening on.
func Use(way Way, devices int) error {
	env, err := Environment(way, devices, "")
	if err != nil {
		return err
	}
	for k, v := range env {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
	}
	return Tell(env[Setting])
}

// Counts are what the library holds and has done.
type Counts struct {
	Allocations, Queues, Streams, Events, Modules, Files int64
	Packets, Kernels                                     uint64
}
