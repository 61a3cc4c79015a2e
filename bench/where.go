package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// where says what ran, on which machine and when.
type where struct {
	Machine string `json:"machine"`
	Date    string `json:"date"`
	Command string `json:"command"`
}

func here() *where {
	return &where{
		Machine: fmt.Sprintf("%s, %d cores, %s, %s/%s", processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Date:    time.Now().UTC().Format("2006-01-02"),
		Command: strings.Join(append([]string{"bench"}, os.Args[1:]...), " "),
	}
}

// processor is the processor's name as the kernel tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
