package docs

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// tests are the names of the module's tests and fuzz tests, behind their folder
// and a dot.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for dir, files := range packages(t, func(p string) bool { return strings.HasSuffix(p, "_test.go") }) {
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
					all[dir+"."+fn.Name.Name] = true
				}
			}
		}
	}
	return all
}

// proven checks that a row has a rule and tests that exist.
func proven(t *testing.T, r row, tests map[string]bool) {
	t.Helper()
	if len(r.cells) != 2 {
		t.Errorf("a row has a rule and its tests, and this has %q", r.cells)
		return
	}
	named := quoted.FindAllStringSubmatch(r.cells[1], -1)
	if len(named) == 0 {
		t.Errorf("no test is named for %q", r.cells[0])
	}
	for _, n := range named {
		if !tests[n[1]] {
			t.Errorf("%q: there is no test %s", r.cells[0], n[1])
		}
	}
}

func TestEveryRuleOfTheContractNamesTestsThatExist(t *testing.T) {
	tests := tests(t)
	rules := map[string]int{}
	for _, r := range rows(t, "contract.md") {
		proven(t, r, tests)
		rules[r.heading]++
	}
	for _, part := range []string{"The kernel author's contract", "Gates and rounds", "Requirements and limits"} {
		if rules[part] < 5 {
			t.Errorf("%q has %d rules", part, rules[part])
		}
	}
}

func TestEveryPromiseOfReliabilityNamesTestsThatExist(t *testing.T) {
	tests := tests(t)
	promises := 0
	for _, r := range rows(t, "reliability.md") {
		if r.heading == "Promises" {
			proven(t, r, tests)
			promises++
		}
	}
	if promises < 10 {
		t.Errorf("there are %d promises", promises)
	}
}
