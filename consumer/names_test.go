package consumer_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// enumerations contains the enumerated types of this package, each with a function that returns value n.
var enumerations = map[string]func(n uint8) fmt.Stringer{
	"Outcome":         func(n uint8) fmt.Stringer { return store.Outcome(n) },
	"VerdictKind":     func(n uint8) fmt.Stringer { return store.VerdictKind(n) },
	"Class":           func(n uint8) fmt.Stringer { return store.Class(n) },
	"CommitOutcome":   func(n uint8) fmt.Stringer { return store.CommitOutcome(n) },
	"SettleKind":      func(n uint8) fmt.Stringer { return semel.SettleKind(n) },
	"End":             func(n uint8) fmt.Stringer { return source.End(n) },
	"Action":          func(n uint8) fmt.Stringer { return consumer.Action(n) },
	"OnFiltered":      func(n uint8) fmt.Stringer { return consumer.OnFiltered(n) },
	"LaneMode":        func(n uint8) fmt.Stringer { return consumer.LaneMode(n) },
	"OnParked":        func(n uint8) fmt.Stringer { return consumer.OnParked(n) },
	"CallOutcome":     func(n uint8) fmt.Stringer { return store.CallOutcome(n) },
	"Resolution":      func(n uint8) fmt.Stringer { return admin.Resolution(n) },
	"LookupResult":    func(n uint8) fmt.Stringer { return consumer.LookupResult(n) },
	"KeyState":        func(n uint8) fmt.Stringer { return keystore.State(n) },
	"KeyEvent":        func(n uint8) fmt.Stringer { return keystore.Event(n) },
	"Durability":      func(n uint8) fmt.Stringer { return keystore.Durability(n) },
	"RowEvent":        func(n uint8) fmt.Stringer { return store.RowEvent(n) },
	"Strategy":        func(n uint8) fmt.Stringer { return consumer.Strategy(n) },
	"Decision":        func(n uint8) fmt.Stringer { return semel.Decision(n) },
	"GenerationState": func(n uint8) fmt.Stringer { return generations.State(n) },
	"ErasurePart":     func(n uint8) fmt.Stringer { return admin.ErasurePart(n) },
	"IDTime":          func(n uint8) fmt.Stringer { return identity.IDTime(n) },
	"ValueKind":       func(n uint8) fmt.Stringer { return selectors.Kind(n) },
}

func TestEveryValueOfAListHasItsOwnName(t *testing.T) {
	declared := declaredValues(t)
	for kind, value := range enumerations {
		names := map[string]bool{}
		for n := range 256 {
			if name := value(uint8(n)).String(); !strings.Contains(name, "(") {
				names[name] = true
			} else if name != fmt.Sprintf("%s(%d)", kind, n) {
				t.Errorf("%s %d without a name prints %q", kind, n, name)
			}
		}
		if len(names) != declared[kind] {
			t.Errorf("%s has %d values and %d names: %v", kind, declared[kind], len(names), names)
		}
	}
	for kind, n := range declared {
		if enumerations[kind] == nil {
			t.Errorf("%s has %d values and no names; give it a String method, and this test a line", kind, n)
		}
	}
	if got := fmt.Sprint(store.StateParked, " ", store.Parked, " ", consumer.ActionKeepFirst); got != "PARKED parked keep_first" {
		t.Errorf("printed: %s", got)
	}
}

// declaredValues counts the exported constants of each exported integer type of this package, store, source and
// identity.
func declaredValues(t *testing.T) map[string]int {
	var files []string
	for _, room := range []string{"..", ".", "../store", "../source", "../internal/admin", "../identity", "../keystore", "../internal/generations", "../internal/selectors"} {
		found, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", room, len(found), err)
		}
		files = append(files, found...)
	}
	small, values := map[string]bool{}, map[string]int{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if group, ok := d.(*ast.GenDecl); ok {
				count(group, printed[parsed.Name.Name], small, values)
			}
		}
	}
	for kind := range values {
		if !small[kind] {
			delete(values, kind)
		}
	}
	if len(values) == 0 {
		t.Fatal("no values were found")
	}
	return values
}

// printed contains the types whose values have a String method that returns more than the name of the value.
var printed = map[string]map[string]string{
	"keystore": {"State": "KeyState", "Event": "KeyEvent"}, "generations": {"State": "GenerationState"}, "selectors": {"Kind": "ValueKind"},
}

func count(group *ast.GenDecl, printed map[string]string, small map[string]bool, values map[string]int) {
	name := func(s string) string {
		if long := printed[s]; long != "" {
			return long
		}
		return s
	}
	kind := ""
	for _, spec := range group.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			under, ok := s.Type.(*ast.Ident)
			small[name(s.Name.Name)] = ok && s.Name.Name != "Place" && s.Name.IsExported() && (under.Name == "uint8" || under.Name == "int64")
		case *ast.ValueSpec:
			if group.Tok != token.CONST {
				continue
			}
			if named, ok := s.Type.(*ast.Ident); ok {
				kind = name(named.Name)
			} else if len(s.Values) > 0 {
				kind = ""
			}
			if s.Names[0].IsExported() || s.Names[0].Name == "onParkedDefault" {
				values[kind] += len(s.Names)
			}
		}
	}
}
