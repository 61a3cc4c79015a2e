package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's folder.
const root = ".."

// packages parses the module's Go files that pass, by the folder that they are
// in, relative to the module's.
func packages(t *testing.T, pass func(path string) bool) map[string][]*ast.File {
	t.Helper()
	files := map[string][]*ast.File{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || !strings.HasSuffix(path, ".go") || !pass(rel) {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		files[dir] = append(files[dir], f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rows are the cells of each row of a page's tables, with the heading of the
// second level above it; the heads of tables are left out.
func rows(t *testing.T, page string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	heading := ""
	for i, line := range lines {
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---") {
			continue
		}
		r := row{heading: heading}
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			r.cells = append(r.cells, strings.TrimSpace(cell))
		}
		rows = append(rows, r)
	}
	return rows
}

type row struct {
	heading string
	cells   []string
}
