package docs

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]*)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	texts := map[string]string{}
	for _, p := range pages(t) {
		texts[p.path] = p.prose()
	}
	for from, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, heading, _ := strings.Cut(m[1], "#")
			if to = path.Join(path.Dir(from), to); strings.HasPrefix(m[1], "#") {
				to = from
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", from, m[1])
			} else if heading != "" && !headings(texts[to])[heading] {
				t.Errorf("%s links to %s, and %s has no such heading", from, m[1], to)
			}
		}
	}
}

// headings are a page's headings as links name them.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			h = regexp.MustCompile(`[^\p{L}\p{N}\- ]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), "")
			all[strings.ReplaceAll(h, " ", "-")] = true
		}
	}
	return all
}

func TestTheIndexListsEveryPage(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, p := range pages(t) {
		name, in := strings.CutPrefix(p.path, "docs/")
		if in && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", p.path)
		}
	}
}

var (
	makes   = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z-]*)")
	runs    = regexp.MustCompile(`go run \./(\S+)`)
	targets = regexp.MustCompile(`(?m)^([a-z][a-z-]*)\s*:`)
)

func TestCommandsOnPagesExist(t *testing.T) {
	files := []string{"Makefile"}
	for _, pattern := range []string{"*/*.mk", "*/*/*.mk"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			rel, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, rel)
		}
	}
	known := map[string]bool{}
	for _, f := range files {
		for _, m := range targets.FindAllStringSubmatch(read(t, f), -1) {
			known[m[1]] = true
		}
	}
	for _, p := range pages(t) {
		for _, m := range makes.FindAllStringSubmatch(p.text, -1) {
			if !known[m[1]] {
				t.Errorf("%s says make %s, and there is no such target", p.path, m[1])
			}
		}
		for _, m := range runs.FindAllStringSubmatch(p.text, -1) {
			folder := strings.Trim(m[1], "`.,;:)")
			if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
				t.Errorf("%s runs ./%s, which is not there", p.path, folder)
			}
		}
	}
}

var (
	required = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) v\S+$`) // not the indirect ones
	module   = regexp.MustCompile("`([a-z]\\S+/\\S+)`")
)

func TestEveryDependencyHasAReason(t *testing.T) {
	requires := map[string]bool{}
	for _, m := range required.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		requires[m[1]] = true
	}
	if len(requires) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	reasons := map[string]bool{}
	for _, line := range strings.Split(read(t, "docs/dependencies.md"), "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range module.FindAllStringSubmatch(first, -1) {
			reasons[m[1]] = true
		}
	}
	for m := range requires {
		if !reasons[m] {
			t.Errorf("docs/dependencies.md has no row for %s", m)
		}
	}
	for m := range reasons {
		if !requires[m] {
			t.Errorf("docs/dependencies.md has a row for %s, which go.mod does not require", m)
		}
	}
}

func TestPlansNeedFewModules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./plan")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	want := []string{"github.com/triggeredplans/sluice", "golang.org/x/sync", "golang.org/x/sys"}
	if got := slices.Compact(modules); !slices.Equal(got, want) {
		t.Errorf("programs that use plans are built with %v; docs/dependencies.md promises %v", got, want)
	}
}
