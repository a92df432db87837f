package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// fakeStore is a test store whose row numbers are all even. mismatches has the rows that contradict their
// markers.
type fakeStore struct {
	rows       int64
	mismatches map[int64]bool
	calls      int
}

// compare compares rows in the way in which a store does.
func (s *fakeStore) compare(_ context.Context, after int64, most int) (found sqlstore.Looked, err error) {
	s.calls++
	for row := after + 1; row <= 2*s.rows && found.Rows < int64(most); row++ {
		if row%2 != 0 {
			continue
		}
		if found.Last, found.Rows = row, found.Rows+1; s.mismatches[row] { // like a database, the test store does not sort contradictions
			found.Denied = append([]sqlstore.Mismatch{{Row: row, State: store.StateCompleted, Marker: store.Waiting}}, found.Denied...)
		}
	}
	return found, nil
}

func rowsOf(all ...sqlstore.Mismatch) (rows []int64) {
	for _, d := range all {
		rows = append(rows, d.Row)
	}
	return rows
}

func TestALookThatWasInterruptedGoesOn(t *testing.T) {
	s := &fakeStore{rows: 23_456, mismatches: map[int64]bool{2: true, 9_998: true, 10_000: true, 10_002: true, 31_000: true, 46_912: true}}
	whole := compareRows(t.Context(), 0, time.Minute, s.compare)
	t.Run("K3_in_one_go", func(t *testing.T) {
		if whole.Rows != s.rows || whole.To != 2*s.rows || whole.Rest != "" || len(whole.Denied) != len(s.mismatches) || s.calls != 5 {
			t.Errorf("%+v in %d calls", whole, s.calls)
		}
	})
	for at := 1; at <= 5; at++ {
		t.Run("K3_law_12_interrupted_in_a_slice_it_finds_the_same_before_and_after", func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			asked := 0
			first := compareRows(ctx, 0, time.Minute, func(ctx context.Context, after int64, most int) (sqlstore.Looked, error) {
				if asked++; asked == at {
					interrupt()
					return sqlstore.Looked{}, ctx.Err()
				}
				return s.compare(ctx, after, most)
			})
			if first.Rest != "the check was interrupted" || first.To != int64(at-1)*2*slice || first.Rows != int64(at-1)*slice {
				t.Errorf("%+v", first)
			}
			second := compareRows(t.Context(), first.To, time.Minute, s.compare)
			if found := rowsOf(append(first.Denied, second.Denied...)...); !slices.Equal(found, rowsOf(whole.Denied...)) || second.Rest != "" || first.Rows+second.Rows != whole.Rows {
				t.Errorf("%v were found, %v in one go; %+v", found, rowsOf(whole.Denied...), second)
			}
		})
	}
	t.Run("K3_what_a_database_said_before_it_went_away_stands", func(t *testing.T) {
		d := compareRows(t.Context(), 0, time.Minute, func(ctx context.Context, after int64, most int) (sqlstore.Looked, error) {
			if after > 0 {
				return sqlstore.Looked{}, errors.New("nobody\nanswers")
			}
			return s.compare(ctx, after, most)
		})
		if d.Rest != "nobody answers" || d.To != 2*slice || !slices.Equal(rowsOf(d.Denied...), []int64{2, 9_998, 10_000}) {
			t.Errorf("%+v", d)
		}
	})
}

func TestMoreRowsThanAreNamedAreFoundInTurns(t *testing.T) {
	s := &fakeStore{rows: 12_000, mismatches: map[int64]bool{}}
	for row := int64(2); row <= 700; row += 2 {
		s.mismatches[row] = true
	}
	s.mismatches[24_000] = true
	t.Run("K3_each_once", func(t *testing.T) {
		var found []int64
		for from, turns := int64(0), 1; ; turns++ {
			d := compareRows(t.Context(), from, time.Minute, s.compare)
			found, from = append(found, rowsOf(d.Denied...)...), d.To
			if d.Rest == "" {
				if turns != 4 {
					t.Errorf("%d turns", turns)
				}
				break
			}
			if len(d.Denied) != mostDenied || d.Rest != fmt.Sprintf("the limit of %d was reached", mostDenied) {
				t.Fatalf("%+v", d)
			}
		}
		if len(found) != len(s.mismatches) || !slices.IsSorted(found) || len(slices.Compact(found)) != len(s.mismatches) {
			t.Errorf("%d of %d: %v", len(found), len(s.mismatches), found)
		}
	})
}

func TestAsManyRowsAsAreNamedAreAll(t *testing.T) {
	t.Run("K3_where_no_other_follows", func(t *testing.T) {
		s := &fakeStore{rows: 400, mismatches: map[int64]bool{}}
		for row := int64(2); row <= 2*mostDenied; row += 2 {
			s.mismatches[row] = true
		}
		if d := compareRows(t.Context(), 0, time.Minute, s.compare); len(d.Denied) != mostDenied || d.Rest != "" || d.To != 800 || d.Rows != 400 {
			t.Errorf("%d, up to %d of %d rows: %q", len(d.Denied), d.To, d.Rows, d.Rest)
		}
	})
}

func TestWhatWasNotLookedAtIsNotKnown(t *testing.T) {
	t.Run("K3_7_a_look_that_was_interrupted_passes_nothing", func(t *testing.T) {
		s := subject(t, validPolicy)
		s.Facts.Deep = &Deep{From: 5000, To: 20_000, Rows: 7500, Rest: "the check was interrupted"}
		a := s.checkAtomicity()
		if a.Result != CannotKnow || !strings.Contains(a.Evidence, "7500 rows after row 5000 agree with their markers and streams, but rows after row 20000 were not compared: the check was interrupted") ||
			a.Remedy != "semel check --deep --consumer billing --from 20000" {
			t.Errorf("%+v", a)
		}
		s.Facts.Deep.Denied = []sqlstore.Mismatch{{Row: 6000, State: store.StateCompleted}}
		if a := s.checkAtomicity(); a.Result != Fail || !strings.Contains(a.Evidence, "records of the same commits contradict 1 row up to row 20000") {
			t.Errorf("%+v", a)
		}
	})
}

func TestWhatAPolicyExplainsIsNotDenied(t *testing.T) {
	unmarked := sqlstore.Mismatch{By: sqlstore.MismatchCause}
	t.Run("K3_7_an_intent_without_a_marker_where_none_are_written", func(t *testing.T) {
		s := subject(t, validPolicy)
		if s.isExplained(unmarked) {
			t.Error("where markers are written")
		}
		s.Consumer.Strategy.Natural = &policy.Natural{}
		if !s.isExplained(unmarked) {
			t.Error("of a natural effect it is denied")
		}
		s.Consumer.Strategy.Natural, s.Consumer.Strategy.BusinessKey = nil, &policy.BusinessKey{}
		if s.Consumer.Strategy.Marker = false; !s.isExplained(unmarked) {
			t.Error("with a business key alone it is denied")
		}
		if s.Consumer.Strategy.Marker = true; s.isExplained(unmarked) {
			t.Error("with a marker beside the business key")
		}
	})
	t.Run("K3_7_who_took_effect_without_its_stream_where_versions_are_not_guarded", func(t *testing.T) {
		s := subject(t, validPolicy)
		astray := sqlstore.Mismatch{Row: 1, State: store.StateCompleted, By: sqlstore.MismatchStream}
		if s.Consumer.Version = nil; !s.isExplained(astray) {
			t.Error("without versions it is denied")
		}
		s.Consumer.Version = &policy.Version{}
		if s.isExplained(astray) {
			t.Error("where versions are guarded")
		}
	})
	t.Run("K3_7_what_a_marker_says_is_not_explained", func(t *testing.T) {
		s := subject(t, validPolicy)
		s.Consumer.Strategy.Natural = &policy.Natural{}
		if s.isExplained(sqlstore.Mismatch{By: sqlstore.MismatchCause, Marker: store.Parked}) || s.isExplained(sqlstore.Mismatch{By: sqlstore.MismatchMarker}) {
			t.Error("it is")
		}
	})
	t.Run("K3_7_a_row_that_is_denied_twice_is_one", func(t *testing.T) {
		d := &Deep{}
		d.add(sqlstore.Looked{Denied: []sqlstore.Mismatch{{Row: 2}, {Row: 1}, {Row: 2, By: sqlstore.MismatchCause}}, Last: 2, Rows: 2, Intents: 1})
		if len(d.Denied) != 2 || d.Denied[1] != (sqlstore.Mismatch{Row: 2}) || d.Intents != 1 || d.To != 2 {
			t.Errorf("%+v", d)
		}
		if said := d.comparison(); said != "2 rows agree with their markers and streams, and 1 intent with the markers of their messages" {
			t.Error(said)
		}
	})
}
