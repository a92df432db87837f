package sqlsuite

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// runWays returns a Ways after the runs of a first way whose cases sent the given statements. The second
// result contains the cases that a further way runs.
func runWays(t *testing.T, sent ...[]string) (*Ways, []string) {
	t.Setenv("SEMEL_TEST_FORMS", "")
	w := &Ways{}
	only, names := w.First(nil), []string{"a", "b", "c"}[:len(sent)]
	for i, name := range names {
		if !only(name) {
			t.Errorf("the first way leaves out %s", name)
		}
		for _, text := range sent[i] {
			var failed error
			if text == "refused" {
				failed = &pgconn.PgError{Code: "23505"}
			}
			ctx := w.TraceQueryStart(t.Context(), nil, pgx.TraceQueryStartData{SQL: `select "Case 7".x`})
			if text != "refused" {
				ctx = w.TraceQueryStart(t.Context(), nil, pgx.TraceQueryStartData{SQL: text})
			}
			w.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: failed})
		}
	}
	return w, names
}

func TestAFurtherWaySendsWhatTheFirstDoes(t *testing.T) {
	t.Run("the_case_that_sends_the_most_goes_before_others", func(t *testing.T) {
		w, names := runWays(t, []string{"begin", "one"}, []string{"begin", "one", "two"}, []string{`from "Case 1".x`})
		only := w.Further()
		if got := slices.Collect(chosen(names, only)); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("it runs %q", got)
		}
		if !only("of queues alone") {
			t.Error("a case that the first way has not is left out")
		}
	})
	t.Run("schemas_do_not_count_and_errors_do", func(t *testing.T) {
		w, names := runWays(t, []string{`select "Case 1".x`}, []string{`select "Case 2".x`, "refused"}, []string{"refused"})
		if got := slices.Collect(chosen(names, w.Further())); !slices.Equal(got, []string{"b"}) {
			t.Errorf("it runs %q", got)
		}
	})
	t.Run("what_comes_after_the_first_way_is_not_its", func(t *testing.T) {
		w, _ := runWays(t, []string{"one"})
		w.Further()
		w.TraceQueryEnd(w.TraceQueryStart(t.Context(), nil, pgx.TraceQueryStartData{SQL: "two"}), nil, pgx.TraceQueryEndData{Err: errors.New("closed")})
		if got := slices.Collect(maps.Keys(w.sent["a"])); !slices.Equal(got, []string{"one"}) {
			t.Errorf("%q were noted", got)
		}
	})
	t.Run("all_run_without_a_first_way_and_where_all_are_asked_for", func(t *testing.T) {
		if w := (&Ways{}); w.Further() != nil {
			t.Error("without a first way it chooses")
		}
		w, _ := runWays(t, []string{"one"}, []string{"one"})
		t.Setenv("SEMEL_TEST_FORMS", "all")
		if w.Further() != nil || !OneLine("law_16_every_pair_of_rows_of_an_identity/the_first_parked") {
			t.Error("with SEMEL_TEST_FORMS=all it chooses")
		}
	})
	t.Run("none_runs_where_one_way_is_enough", func(t *testing.T) {
		w, names := runWays(t, []string{"one"}, []string{"two"})
		t.Setenv("SEMEL_TEST_FORMS", "one")
		if got := slices.Collect(chosen(append(names, "of queues alone"), w.Further())); len(got) != 0 {
			t.Errorf("it runs %q", got)
		}
	})
}

func chosen(names []string, only func(string) bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, name := range names {
			if only(name) && !yield(name) {
				return
			}
		}
	}
}
