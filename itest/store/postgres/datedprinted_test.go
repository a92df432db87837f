package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// runPrintedReaper executes the text that PrintReaper prints for the consumer: a procedure, which removes old markers
// inside the database, and a call of it.
func (s *fixture) runPrintedReaper(t *testing.T) {
	t.Helper()
	var text strings.Builder
	if err := s.store.PrintReaper(&text, []string{"billing"}); err != nil {
		t.Fatal(err)
	}
	procedure, call, found := strings.Cut(text.String(), "$procedure$;\n")
	if !found {
		t.Fatalf("it prints:\n%s", text.String())
	}
	for _, statement := range []string{procedure + "$procedure$", call} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePrintedReaperDropsDays(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{}).useDailyPartitions(t, 6)
	t.Run("H3_none_of_who_keeps_for_ever", func(t *testing.T) {
		s.setRetention(t, 0)
		s.runPrintedReaper(t)
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-5, 9)), isFresh)
		if n := len(s.listPartitions(t)); n != 10 {
			t.Errorf("%d days stand", n)
		}
	})
	s.setRetention(t, 2*aDay)
	s.processAll(t, store.Applied, uuid(-5, 1), uuid(-1, 2))
	s.processAll(t, store.Parked, uuid(-4, 3))
	t.Run("H3_what_would_go_is_counted", func(t *testing.T) {
		r, err := s.reaper().Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 100, DryRun: true})
		if err != nil || r.Days != 3 || len(s.listPartitions(t)) != 10 {
			t.Errorf("%+v, %v; %d days stand", r, err, len(s.listPartitions(t)))
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-5, 1)), isApplied)
	})
	t.Run("H3_those_that_are_due_but_what_has_not_ended", func(t *testing.T) {
		s.runPrintedReaper(t)
		if n := len(s.listPartitions(t)); n != 7 {
			t.Errorf("%d days stand", n)
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-5, 1), uuid(-5, 4), uuid(-4, 3), uuid(-1, 2)), isOld, isOld, isParked, isApplied)
	})
	t.Run("H3_the_days_that_stand_are_shown", func(t *testing.T) {
		all, err := s.reaper().Retentions(t.Context(), "billing")
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		first := sqlsuite.Today(t).Add(-4 * aDay)
		if d := all[0].Days; d.Kept != 7 || d.Due != 1 || !d.First.Equal(first) || time.Since(all[0].First) < 4*aDay {
			t.Errorf("%+v, want the first %v", all[0], first)
		}
	})
}
