package store

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// values returns the constants of a type in a file, by name.
func values(t *testing.T, file, kind string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok || len(s.Values) != 1 {
			return true
		}
		if of, ok := s.Type.(*ast.Ident); ok && of.Name == kind {
			found[s.Names[0].Name] = s.Values[0].(*ast.BasicLit).Value
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constant of type %s", file, kind)
	}
	return found
}

func TestStoredNumbersAndNamesAreReserved(t *testing.T) {
	t.Run("trap_T104_a_number_means_what_it_always_meant", func(t *testing.T) {
		for name, value := range values(t, "outcome.go", "Outcome") {
			n, err := strconv.ParseUint(value, 10, 8)
			if err != nil {
				t.Fatal(err)
			}
			o := Outcome(n)
			if reservedOutcomes[uint8(n)] != o.String() || strings.ReplaceAll(o.String(), "_", "") != strings.ToLower(name) {
				t.Errorf("%s has the number %d, which is reserved for %q", name, n, reservedOutcomes[uint8(n)])
			}
			if v := Found(int64(n)); v.Kind != Seen || v.Was != o || !o.Known() {
				t.Errorf("a stored %d is not %s", n, name)
			}
		}
		for _, number := range []int64{-1, 0, 6, 9, 255, 256, 257, 1 << 40} {
			if v := Found(number); v.Kind != Newer || int64(v.Was) != number || v.String() != fmt.Sprint("newer outcome ", number) {
				t.Errorf("a stored %d is %s", number, v)
			}
		}
	})
	t.Run("trap_T104_a_state_that_no_release_has_written_is_reserved_and_not_understood", func(t *testing.T) {
		written := 0
		for name, value := range values(t, "states.go", "RowState") {
			s, err := strconv.Unquote(value)
			if err != nil || !slices.Contains(reservedStates, s) || !RowState(s).Known() {
				t.Errorf("%s is %s, which is not reserved, or Known does not know it", name, value)
			}
			written++
		}
		for _, s := range append(reservedStates, "FUTURE", "") {
			if RowState(s).Known() {
				written--
			}
		}
		if written != 0 {
			t.Errorf("the numbers of known and declared states differ by %d", written)
		}
	})
}
