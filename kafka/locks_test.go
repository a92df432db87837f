package kafka

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// If a type has a field mu, this mutex guards the fields that follow mu. Other types must access these fields through
// methods of the type, so that no access forgets the lock.
func TestWhatALockGuardsIsReachedThroughItsOwnersMethods(t *testing.T) {
	files, parsed := token.NewFileSet(), []*ast.File{}
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, 0)
		must(t, err)
		parsed = append(parsed, file)
	}
	guarded := guardedFields(parsed)
	for room, field := range map[string]string{"lanes": "order", "intake": "corruptBatches", "deliveries": "turn", "progress": "last", "topics": "reading", "faults": "news"} {
		if !slices.Contains(guarded[room], field) {
			t.Fatalf("only %v guarded fields are found", guarded)
		}
	}
	for _, file := range parsed {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				for _, at := range guardedAccesses(function, guarded) {
					t.Errorf("%s: %s accesses fields that another type's lock guards", files.Position(at), function.Name.Name)
				}
			}
		}
	}
}

// guardedFields finds the types with a field mu. The keys of the result are the names of fields whose type has a field
// mu; each value contains mu and the fields that mu guards.
func guardedFields(files []*ast.File) map[string][]string {
	byType, typeOf := map[string][]string{}, map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			var behind []string
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					if name.Name == "mu" || len(behind) > 0 {
						behind = append(behind, name.Name)
					}
					if pointed, ok := field.Type.(*ast.StarExpr); ok {
						field.Type = pointed.X
					}
					if held, ok := field.Type.(*ast.Ident); ok {
						typeOf[name.Name] = held.Name
					}
				}
			}
			byType[declared.Name.Name] = behind
			return true
		})
	}
	all := map[string][]string{}
	for name, held := range typeOf {
		all[name] = byType[held]
	}
	return all
}

// guardedAccesses returns the places at which a function accesses guarded fields of another type, or a lock that
// does not belong to the function's receiver.
func guardedAccesses(f *ast.FuncDecl, guarded map[string][]string) []token.Pos {
	var all []token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		field, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		owner, ok := field.X.(*ast.SelectorExpr)
		if ok && slices.Contains(guarded[owner.Sel.Name], field.Sel.Name) {
			all = append(all, field.Pos())
		}
		if local, ok := field.X.(*ast.Ident); ok && field.Sel.Name == "mu" && !isReceiver(f, local.Name) {
			all = append(all, field.Pos())
		}
		return true
	})
	return all
}

func isReceiver(f *ast.FuncDecl, name string) bool {
	return f.Recv != nil && len(f.Recv.List[0].Names) == 1 && f.Recv.List[0].Names[0].Name == name
}
