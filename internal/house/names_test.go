package house

import (
	"go/ast"
	"testing"
)

// mostNames is how many exported names a reader of go doc is shown at most: of
// the words, and of what a user holds in all.
const (
	mostWords = 117
	mostNames = 219
)

func TestAUserIsShownFewNames(t *testing.T) {
	names := map[string]int{}
	for _, f := range files(t) {
		if !f.Test() {
			names[f.Package()] += exported(f.Tree)
		}
	}
	words, all := names["."], names["."]+names["identity"]+names["consumer"]
	if words == 0 || words > mostWords {
		t.Errorf("package semel shows %d names, at most %d; what only authors of stores and sources need belongs into packages store and source", words, mostWords)
	}
	if all > mostNames {
		t.Errorf("semel, identity and consumer show %d names, at most %d", all, mostNames)
	}
	t.Logf("semel %d, identity %d, consumer %d", words, names["identity"], names["consumer"])
}

// exported counts the names that a file's package shows: types, functions,
// variables and constants. Methods and fields come with their type.
func exported(f *ast.File) (n int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			n += exportedIn(d)
		}
	}
	return n
}

func exportedIn(d *ast.GenDecl) (n int) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				n++
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}
