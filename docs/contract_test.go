package docs

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

func TestEveryRuleOfTheContractNamesTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	for dir, files := range packages(t, func(p string) bool { return strings.HasSuffix(p, "_test.go") }) {
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
					tests[dir+"."+fn.Name.Name] = true
				}
			}
		}
	}
	rules := map[string]int{}
	for _, r := range rows(t, "contract.md") {
		if len(r.cells) != 2 {
			t.Errorf("a row has a rule and its tests, and this has %q", r.cells)
			continue
		}
		rules[r.heading]++
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
	for _, part := range []string{"The kernel author's contract", "Gates and rounds", "Requirements and limits"} {
		if rules[part] < 5 {
			t.Errorf("%q has %d rules", part, rules[part])
		}
	}
}
