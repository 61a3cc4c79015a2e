package docs

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for dir, files := range packages(t) {
		if slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") }) {
			file, opens := "doc.go", "// Package "
			if isProgram(t, dir, files) {
				file, opens = "main.go", "// Command "
			}
			if !slices.Contains(files, file) {
				t.Errorf("%s has no %s", dir, file)
			} else if !strings.Contains("\n"+read(t, path.Join(dir, file)), "\n"+opens+path.Base(dir)) {
				t.Errorf("%s/%s does not begin with %q", dir, file, opens+path.Base(dir))
			}
		}
	}
}

func isProgram(t *testing.T, dir string, files []string) bool {
	return slices.Contains(files, "main.go") && strings.Contains(read(t, path.Join(dir, "main.go")), "\npackage main\n")
}

func TestEveryPackagesTestsLookForGoroutinesLeftOver(t *testing.T) {
	for dir, files := range packages(t) {
		tests := slices.DeleteFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") })
		if len(tests) > 0 && !slices.ContainsFunc(tests, func(f string) bool {
			text := read(t, path.Join(dir, f))
			return strings.Contains(text, "goleak.VerifyTestMain(") || strings.Contains(text, "exampletest.Main(")
		}) {
			t.Errorf("%s has tests without a TestMain that calls goleak.VerifyTestMain", dir)
		}
	}
}
