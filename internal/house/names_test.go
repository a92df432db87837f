package house

import (
	"go/ast"
	"testing"
)

// The maximum numbers of exported names in go doc: mostWords for package semel, mostNames for the three packages that
// users need, mostContracts for the packages for authors of stores and sources, mostKeys for the package for authors of
// key stores, and mostKit for the package that tests handlers.
const (
	mostWords     = 72
	mostNames     = 150
	mostContracts = 129
	mostKeys      = 23
	mostKit       = 6
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
		t.Errorf("package semel exports %d names, more than %d; move names that only authors of stores and sources need to packages store and source", words, mostWords)
	}
	if all > mostNames {
		t.Errorf("semel, identity and consumer export %d names, more than %d", all, mostNames)
	}
	contracts, keys := names["store"]+names["source"], names["keystore"]
	if contracts == 0 || contracts > mostContracts {
		t.Errorf("store and source show %d names, at most %d; what only Semel's own stores have belongs below internal", contracts, mostContracts)
	}
	if keys == 0 || keys > mostKeys {
		t.Errorf("keystore shows %d names, at most %d", keys, mostKeys)
	}
	if kit := names["semeltest"]; kit == 0 || kit > mostKit {
		t.Errorf("semeltest shows %d names, at most %d", kit, mostKit)
	}
	t.Logf("semel %d, identity %d, consumer %d, store %d, source %d, keystore %d", words, names["identity"], names["consumer"], names["store"], names["source"], keys)
}

// exported counts the exported types, functions, variables and constants of a file. Methods and
// fields count with their type.
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
