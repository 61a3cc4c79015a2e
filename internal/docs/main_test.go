package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the module's folder.
const root = "../.."

// page is a Markdown file.
type page struct {
	path string // from the root
	text string
}

// pages are the README and what lies in docs.
func pages(t *testing.T) (all []page) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(paths, filepath.Join(root, "README.md")) {
		path, err := filepath.Rel(root, p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{path, read(t, path)})
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// block is a fenced block of a page.
type block struct{ lang, text string }

func (p page) blocks() (all []block) {
	in := false
	var b block
	for _, line := range strings.SplitAfter(p.text, "\n") {
		switch fence, ok := strings.CutPrefix(line, "```"); {
		case ok && in:
			all = append(all, b)
			in = false
		case ok:
			in, b = true, block{lang: strings.TrimSpace(fence)}
		case in:
			b.text += line
		}
	}
	return all
}

// prose is the page without its blocks.
func (p page) prose() string {
	var b strings.Builder
	for i, part := range strings.Split(p.text, "\n```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// packages are the folders with Go files, from the root, and those files.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name == "build" || name == "testdata" || name[0] == '.' || name[0] == '_') {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			all[dir] = append(all[dir], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
