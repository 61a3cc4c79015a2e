package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program is a complete program on a page, and what the page says it prints.
type program struct{ name, code, output string }

// programs are those of all pages. Each stands before its output, in a block
// of text.
func programs(t *testing.T) (all []program) {
	for _, p := range pages(t) {
		n := 0
		for _, b := range p.blocks() {
			switch {
			case b.lang == "go" && strings.Contains("\n"+b.text, "\npackage main\n"):
				n++
				all = append(all, program{name: fmt.Sprintf("%s#%d", p.path, n), code: b.text})
			case b.lang == "text" && n > 0 && all[len(all)-1].output == "":
				all[len(all)-1].output = b.text
			}
		}
	}
	return all
}

// commands are those with which the README has its program run, in a new
// folder beside a clone that is named sluice.
func commands(t *testing.T) string {
	t.Helper()
	for _, b := range (page{text: read(t, "README.md")}).blocks() {
		if b.lang == "sh" && strings.Contains(b.text, "go mod init") {
			return b.text
		}
	}
	t.Fatal("the README does not say how its program is run")
	return ""
}

func TestProgramsOnPagesRunInAModuleOfTheirOwn(t *testing.T) {
	all := programs(t)
	if len(all) < 2 {
		t.Fatalf("%d programs found; the README has one, and docs/getting-started.md", len(all))
	}
	steps := commands(t)
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.output == "" {
				t.Fatal("no block of text says what the program prints")
			}
			module, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			beside := t.TempDir()
			folder := filepath.Join(beside, "hello")
			if err := os.Mkdir(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(module, filepath.Join(beside, "sluice")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(p.code), 0o666); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", steps)
			cmd.Dir = folder
			cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if stdout.String() != p.output {
				t.Errorf("it prints\n%s\nand the page says\n%s", stdout.String(), p.output)
			}
		})
	}
}
