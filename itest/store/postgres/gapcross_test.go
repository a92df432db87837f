package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// parkGap parks version 3 of a stream because of a gap, and parks a conflict with the same identity. The
// results are the marker to write for the missing version, and the row of the conflict.
func parkGap(t *testing.T, s *fixture) (missing store.Mark, conflict store.StoredRow) {
	t.Helper()
	marks := sqlsuite.Marks[*sql.Tx](t, s.store, "shop", "one", "two", "three", "three")
	for i := range marks[:3] {
		marks[i].Version = versions.Position{Stream: []byte("stream"), Number: int64(i) + 1, Start: 1, Asks: true}
	}
	for content := range 2 {
		marks[2+content].As = store.Parked
		marks[2+content].Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{byte(content)}}
	}
	writes := func(m store.Mark, rows ...store.Row) {
		t.Helper()
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.store, store.TxOptions{}, []store.Mark{m})
		if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
	}
	writes(marks[0])
	writes(marks[2], store.Row{State: store.StateParked, Reason: semel.ReasonGap, Message: &semel.Message{Body: []byte("a")}})
	writes(marks[3], store.Row{State: store.StateParked, Reason: semel.ReasonConflict, Conflict: true, Message: &semel.Message{Body: []byte("b")}})
	for _, r := range rowsOf(t, s) {
		if r.Conflict {
			return marks[1], r
		}
	}
	t.Fatal("there is no row of a conflict")
	return missing, conflict
}

func rowsOf(t *testing.T, s *fixture) []store.StoredRow {
	t.Helper()
	rows, err := s.store.Rows(t.Context(), store.RowFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// In one case, a conflict is retried in an open transaction while the missing version arrives and unblocks the first
// content. In another test case, the missing version arrives before the conflict is retried.
func TestARetryOfAConflictBesideTheEndOfAGap(t *testing.T) {
	ctx := t.Context()
	act := store.Act{Verb: "retry", Who: "test"}
	frees := map[string]func(s *fixture, missing store.Mark) error{
		"the_missing_version_comes": func(s *fixture, missing store.Mark) error {
			b, _, err := s.store.Begin(ctx, store.TxOptions{}, []store.Mark{missing})
			if err != nil {
				return err
			}
			return b.Commit(context.WithoutCancel(ctx), store.Ending{}).Err
		},
		"somebody_skips_it": func(s *fixture, _ store.Mark) error {
			all, err := s.store.Streams(ctx, admin.StreamFilter{})
			if err != nil {
				return err
			}
			return s.store.SkipTo(ctx, all[0], 2, store.Act{Verb: "skip", Who: "test"})
		},
	}
	cross := func(t *testing.T, table string, first, second func(s *fixture, missing store.Mark, conflict store.StoredRow) error) (firstSaid, secondSaid error) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		missing, conflict := parkGap(t, s)
		holder, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Rollback() }()
		if _, err := holder.ExecContext(ctx, s.inSchema("lock table in."+table+" in share mode")); err != nil {
			t.Fatal(err)
		}
		said := [2]chan error{make(chan error, 1), make(chan error, 1)}
		go func() { said[0] <- first(s, missing, conflict) }()
		s.waitLocked(t, 1) // the transaction has sent all statements except the last one
		go func() { said[1] <- second(s, missing, conflict) }()
		s.waitLocked(t, 2)
		if err := holder.Rollback(); err != nil {
			t.Fatal(err)
		}
		firstSaid, secondSaid = <-said[0], <-said[1]
		due := 0
		for _, r := range rowsOf(t, s) {
			if r.State.Outcome() == store.Waiting {
				due++
			}
		}
		if due != 1 {
			t.Errorf("%d rows of one identity are due: %+v", due, rowsOf(t, s))
		}
		return firstSaid, secondSaid
	}
	retry := func(s *fixture, _ store.Mark, conflict store.StoredRow) error {
		return errors.Join(s.store.Requeue(ctx, act, conflict.Seen())...)
	}
	for name, free := range frees {
		free := func(s *fixture, missing store.Mark, _ store.StoredRow) error { return free(s, missing) }
		t.Run("law_16_the_first_stays_when_"+name, func(t *testing.T) {
			if retried, freed := cross(t, "semel_acts", retry, free); retried != nil || freed != nil {
				t.Errorf("the retry says %v, the other %v", retried, freed)
			}
		})
	}
	t.Run("law_16_the_retry_is_refused_when_the_first_was_freed", func(t *testing.T) {
		skip := func(s *fixture, missing store.Mark, _ store.StoredRow) error {
			return frees["somebody_skips_it"](s, missing)
		}
		if freed, retried := cross(t, "semel_acts", skip, retry); freed != nil || !errors.Is(retried, admin.ErrOpen) {
			t.Errorf("the skip says %v, the retry %v, want ErrOpen", freed, retried)
		}
	})
}

func TestTwoRowsOfOneIdentityThatAreDue(t *testing.T) {
	t.Run("law_16_only_the_one_that_has_the_marker_is_worked_on", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		sqlsuite.OpenTwins(t, s.Instance, func(number int64) { s.exec(t, services.DueByHand, number) })
	})
}
