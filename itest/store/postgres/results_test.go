package postgres

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// applyWithResults applies messages and stores a result for each message.
func (s *fixture) applyWithResults(t *testing.T, ids ...string) {
	t.Helper()
	marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", ids...)
	b, _ := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
	for i, m := range marks {
		if err := s.store.KeepResult(t.Context(), b.Tx(i), admin.ResultOf{Scope: m.Scope, ID: m.ID}, []byte("of "+ids[i])); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.Commit(context.WithoutCancel(t.Context()), store.Ending{}); r.Outcome != store.Committed {
		t.Fatalf("the commit says %+v", r)
	}
}

// hasResults counts the results of all consumers.
func (s *fixture) hasResults(t *testing.T, want int) {
	t.Helper()
	var n int
	if err := s.db.QueryRowContext(t.Context(), s.inSchema("select count(*) from in.semel_results")).Scan(&n); err != nil || n != want {
		t.Errorf("%d results are kept, want %d (%v)", n, want, err)
	}
}

func makeDayIDs(days, n int) (ids []string) {
	for i := range n {
		ids = append(ids, uuid(days, i))
	}
	return ids
}

func TestResultsGoWithTheirMarkers(t *testing.T) {
	db := newDatabase(t)
	t.Run("C12_H3_with_the_days_that_are_dropped", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 6)
		s.setRetention(t, 2*aDay)
		s.applyWithResults(t, append(makeDayIDs(-4, 250), uuid(-1, 1), uuid(400, 2))...) // the last id lies in the partition for all other days
		if r := s.pass(t); r.Days != 4 {
			t.Errorf("the pass removed %+v", r)
		}
		s.hasResults(t, 2)
	})
	t.Run("C12_H3_with_the_days_that_the_printed_procedure_drops", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 6)
		s.setRetention(t, 2*aDay)
		s.applyWithResults(t, append(makeDayIDs(-4, 2500), uuid(-1, 1))...)
		s.runPrintedReaper(t)
		s.hasResults(t, 1)
		if n := len(s.listPartitions(t)); n != 6 {
			t.Errorf("%d days stand", n)
		}
	})
	t.Run("C12_H3_with_markers_that_the_printed_procedure_removes", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.applyWithResults(t, makeDayIDs(-100, 2500)...)
		s.exec(t, "update in.semel_markers set at = at - interval '60 days'")
		s.applyWithResults(t, uuid(-1, 1))
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: month}); err != nil {
			t.Fatal(err)
		}
		s.runPrintedReaper(t)
		s.hasResults(t, 1)
	})
}
