package assembly

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// TestEachKeyOfAPolicyIsUsed finds keys of the policy that have no effect. A key has no effect if neither
// this package nor Config in package policy reads the key's field. The tables and rules of package policy do
// not count as readers.
func TestEachKeyOfAPolicyIsUsed(t *testing.T) {
	read := map[string]bool{}
	here, err := filepath.Glob("*.go")
	if err != nil || len(here) < 5 {
		t.Fatalf("%d files: %v", len(here), err)
	}
	for _, file := range append(here, "../policy/config.go", "../policy/policy.go", "../policy/selector.go", "../policy/statements.go", "../policy/derive.go", "../metrics/thresholds.go", "../cli/version.go", "../cli/runs/health.go", "../cli/runs/recordings.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				read[s.Sel.Name] = true
			}
			return true
		})
	}
	t.Run("K2_no_key_is_parsed_and_forgotten", func(t *testing.T) {
		for _, part := range []reflect.Type{reflect.TypeFor[policy.Store](), reflect.TypeFor[policy.Source](), reflect.TypeFor[policy.Consumer](), reflect.TypeFor[policy.Listen](), reflect.TypeFor[policy.Traces](), reflect.TypeFor[policy.Recorder]()} {
			reportUnread(t, part, read, map[reflect.Type]bool{})
		}
	})
}

// reportUnread reports fields of the policy's structs that no code reads.
func reportUnread(t *testing.T, of reflect.Type, read map[string]bool, seen map[reflect.Type]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] || of.PkgPath() != reflect.TypeFor[policy.Policy]().PkgPath() {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		f := of.Field(i)
		if f.IsExported() && !read[f.Name] {
			t.Errorf("the field %s of policy.%s is read from the file and used nowhere", f.Name, of.Name())
		}
		reportUnread(t, f.Type, read, seen)
	}
}
