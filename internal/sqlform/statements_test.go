package sqlform

import (
	"strings"
	"testing"
)

func TestStatementsAreFilledByName(t *testing.T) {
	type some struct{ Mark, ConflictRow string }
	filled := func(files ...string) (some, error) {
		var s some
		texts, err := Texts(files...)
		if err == nil {
			err = Fill(&s, texts)
		}
		return s, err
	}
	t.Run("each_field_has_the_text_of_its_name", func(t *testing.T) {
		got, err := filled("-- What this is.\n\n-- name: mark\ninsert 1;\n", "-- name: conflict row\ninsert 2\n  or 3;\n\n")
		if want := (some{"insert 1", "insert 2\n  or 3"}); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	})
	for name, c := range map[string]struct {
		texts []string
		says  string
	}{
		"trap_T105_a_field_without_a_text_is_an_error": {[]string{"-- name: mark\nx;"}, "ConflictRow of "},
		"trap_T105_an_empty_text_is_an_error":          {[]string{"-- name: mark\n;", "-- name: conflict row\nx;"}, "Mark of "},
		"trap_T105_a_text_without_a_field_is_an_error": {[]string{"-- name: mark\nx;\n-- name: conflict row\nx;\n-- name: marks\nx;"}, "Marks belongs to no statement"},
		"trap_T105_a_name_given_twice_is_an_error":     {[]string{"-- name: mark\nx;", "-- name: conflict row\nx;\n-- name: mark\ny;"}, `two statements are named "mark"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := filled(c.texts...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %s", err, c.says)
			}
		})
	}
	t.Run("an_adopted_table_changes_its_statements_only", func(t *testing.T) {
		p := &Postgres{Begin: "begin", Limit: "limit", Statements: Statements{Mark: "mark", Row: "row"}}
		own := p.With(Adopted{Begin: "b", Mark: "m", Judge: "j", Trim: "t", Outcome: "o"})
		if own.Begin != "b" || own.Mark != "m" || own.Limit != "limit" || own.Row != "row" || p.Mark != "mark" {
			t.Errorf("%+v of %+v", own, p)
		}
	})
}
