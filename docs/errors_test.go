package docs

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// public says whether a file is of a package that users import.
func public(file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	for _, dir := range strings.Split(path.Dir(file), "/") {
		if slices.Contains([]string{"internal", "examples", "bench", "docs"}, dir) {
			return false
		}
	}
	return true
}

// errorsOf are a package's exported error types and values.
func errorsOf(files []*ast.File) (names []string) {
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "Error" && d.Recv != nil {
					typ := d.Recv.List[0].Type
					if p, ok := typ.(*ast.StarExpr); ok {
						typ = p.X
					}
					names = append(names, typ.(*ast.Ident).Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							if d.Tok == token.VAR && strings.HasPrefix(n.Name, "Err") {
								names = append(names, n.Name)
							}
						}
					case *ast.TypeSpec:
						if s.Assign.IsValid() && strings.HasSuffix(s.Name.Name, "Error") {
							names = append(names, s.Name.Name)
						}
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !ast.IsExported(n) })
}

func TestEveryErrorIsListedWithWhatItMeansAndWhatToDo(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range rows(t, "errors.md") {
		if r.heading == "" { // the table of mistakes
			continue
		}
		name := r.heading + "." + strings.Trim(r.cells[0], "`")
		if len(r.cells) != 3 || slices.Contains(r.cells, "") {
			t.Errorf("%s: a row has a name, what it means and what to do, and this has %q", name, r.cells)
		}
		if listed[name] {
			t.Errorf("%s is listed twice", name)
		}
		listed[name] = true
	}
	found := 0
	for dir, files := range packages(t, public) {
		for _, n := range errorsOf(files) {
			found++
			if name := dir + "." + n; !listed[name] {
				t.Errorf("%s is not listed in errors.md", name)
			} else {
				delete(listed, name)
			}
		}
	}
	for name := range listed {
		t.Errorf("errors.md lists %s, which does not exist", name)
	}
	if found < 50 {
		t.Errorf("only %d errors were found in the source", found)
	}
}
