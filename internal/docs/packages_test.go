package docs

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A package says it in doc.go, a program there or in main.go.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for dir, files := range packages(t) {
		if !slices.ContainsFunc(files, func(f string) bool { return !strings.HasSuffix(f, "_test.go") }) {
			continue
		}
		said := false
		for _, f := range []string{"doc.go", "main.go"} {
			if !slices.Contains(files, f) {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, f), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			name, text := path.Base(dir), file.Doc.Text()
			if file.Name.Name != "main" {
				said = said || strings.HasPrefix(text, "Package "+name+" ")
			} else {
				said = said || strings.HasPrefix(text, "Command "+name+" ") || strings.HasPrefix(text, strings.ToUpper(name[:1])+name[1:]+" ")
			}
		}
		if !said {
			t.Errorf("%s has no doc.go that begins with what it is", dir)
		}
	}
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
