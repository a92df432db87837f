package house

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// camel matches a word that can only be a symbol. A word after a dot does not match, because there the comment names
// the package of the symbol.
var camel = regexp.MustCompile(`(^|[^\w.-])([A-Z][a-z0-9]+[A-Z]\w*)`)

// proper contains names that look like symbols but are none.
var proper = map[string]bool{"CloudEvents": true}

// library reports whether the file belongs to a package that users import.
func library(f *File) bool {
	outside := strings.HasPrefix(f.Path, "itest/") || strings.HasPrefix(f.Path, "examples/")
	return !f.Test() && !outside && f.Tree.Name.Name != "main" && !strings.Contains(f.Path, "internal/")
}

// identifiersByPackage returns, for each package of the library, the identifiers that its files use without naming a
// package. In the inner map, the value for an identifier is true if the package exports the identifier.
func identifiersByPackage(all []*File) map[string]map[string]bool {
	packages := map[string]map[string]bool{}
	for _, f := range all {
		if !library(f) {
			continue
		}
		if packages[f.Package()] == nil {
			packages[f.Package()] = map[string]bool{}
		}
		names := packages[f.Package()]
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = n.Name.IsExported()
			case *ast.ValueSpec:
				for _, id := range n.Names {
					names[id.Name] = id.IsExported()
				}
			case *ast.FuncDecl:
				names[n.Name.Name] = n.Recv == nil && n.Name.IsExported() || names[n.Name.Name]
			case *ast.Ident:
				if !names[n.Name] { // the package uses the name, but not as a symbol of its own
					names[n.Name] = false
				}
			}
			return true
		})
	}
	return packages
}

// If a symbol moves to another package, comments that name the symbol become wrong, and only this test notices.
func TestCommentsNameSymbolsWithTheirPackage(t *testing.T) {
	packages := identifiersByPackage(files(t))
	for _, f := range files(t) {
		for _, group := range f.Tree.Comments {
			for _, m := range camel.FindAllStringSubmatch(group.Text(), -1) {
				_, here := packages[f.Package()][m[2]]
				for p, names := range packages {
					if library(f) && !here && names[m[2]] && !proper[m[2]] {
						t.Errorf("%s:%d: the comment names %s, which is a symbol of package %s: write its package, too", f.Path, f.Line(group), m[2], p)
					}
				}
			}
		}
	}
}
