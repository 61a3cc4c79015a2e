package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// readFile is the results in a file that -json has written.
func readFile(name string) ([]result, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// toBenchstat writes a file's samples as lines that benchstat reads: one of
// Go's benchmark lines for each.
func toBenchstat(to io.Writer, name string) error {
	all, err := readFile(name)
	if err != nil {
		return err
	}
	plain := strings.NewReplacer(" ", "-", "×", "x").Replace
	for _, r := range all {
		for _, v := range r.Samples {
			if _, err := fmt.Fprintf(to, "Benchmark/%s/%s 1 %v %s\n", plain(r.Figure), plain(r.Case), v, plain(r.Unit)); err != nil {
				return err
			}
		}
	}
	return nil
}
