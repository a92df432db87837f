package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestActsReachMarkersByDay(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	common := s.store
	s.useDailyPartitions(t, 1)
	t.Run("G4_of_a_row_through_the_store_of_all", func(t *testing.T) {
		id := uuid(0, 1)
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", id)
		marks[0].As = store.Parked
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
		row := store.Row{State: store.StateParked, Reason: semel.ReasonExhausted, Message: &semel.Message{}}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
			t.Fatalf("the commit says %+v", r)
		}
		rows, err := common.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 {
			t.Fatalf("the rows are %+v, %v", rows, err)
		}
		if err := errors.Join(common.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me", Why: "it"}, rows[0].Seen())...); err != nil {
			t.Fatal(err)
		}
		m, there, err := common.Marker(t.Context(), semel.Key{Consumer: "billing", Source: "shop", ID: id})
		if err != nil || !there || m.Outcome != store.Waiting {
			t.Errorf("its marker is %+v, %v, %v", m, there, err)
		}
	})
	t.Run("K13_what_is_known_of_an_id_is_told_by_the_store_of_all", func(t *testing.T) {
		aside := uuid(-40, 7) // id of a day whose partition was dropped
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", aside)
		marks[0].As = store.Parked
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
		row := store.Row{State: store.StateParked, Reason: reasonname.Expired, Message: &semel.Message{}}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
			t.Fatalf("the commit says %+v", r)
		}
		for id, want := range map[string]store.Outcome{uuid(0, 1): store.Waiting, aside: store.Parked} {
			known, err := common.Known(t.Context(), "billing", id)
			if err != nil || len(known) != 1 || known[0].Outcome != want || known[0].Key.Source != "shop" {
				t.Errorf("of %s %+v is known, %v", id, known, err)
			}
			rows, err := common.RowsOf(t.Context(), "billing", id, false)
			if err != nil || len(rows) != 1 || rows[0].Key.ID != id {
				t.Errorf("its rows are %+v, %v", rows, err)
			}
		}
		if known, err := common.Known(t.Context(), "billing", "never"); err != nil || len(known) > 0 {
			t.Errorf("of another %+v is known, %v", known, err)
		}
		if found, err := common.Denials(t.Context(), "billing", 0, 10); err != nil || len(found.Denied) > 0 || found.Rows != 2 || found.Last < 2 {
			t.Errorf("%+v, %v", found, err)
		}
		if n, err := common.Upkeep(t.Context(), "billing"); err != nil || n.Parked != 1 || n.Latest != 2 {
			t.Errorf("the upkeep is %+v, %v", n, err)
		}
	})
	t.Run("law_12_the_store_of_all_marks_nothing_of_the_consumer", func(t *testing.T) {
		other := newUnmigratedStore(t, s.db, sqlstore.Options{Schema: s.schema})
		if _, err := other.Scope(t.Context(), "billing", "shop", 0); !errors.Is(err, semel.ErrState) {
			t.Errorf("the error is %v", err)
		}
		if _, err := other.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.ULID}); !errors.Is(err, semel.ErrState) {
			t.Errorf("of another kind the error is %v", err)
		}
		if err := other.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: aDay}); !errors.Is(err, semel.ErrState) {
			t.Errorf("it keeps another retention: %v", err)
		}
		for _, keep := range []time.Duration{0, 5 * aDay} { // a retention for a table without daily partitions: unlimited and limited
			c, err := consumer.New(other, func(context.Context, *sql.Tx, *semel.Message) error { return nil }, consumer.Config{
				Name: "billing", Strategy: consumer.StrategyInbox, Identity: identity.CloudEvents(), Retention: consumer.RetentionPolicy{Keep: keep}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Work(t.Context()); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "kept by day") {
				t.Errorf("with %v it says %v", keep, err)
			}
		}
	})
}

func TestMarkersAreMovedToDays(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T80_by_a_consumer_that_stands_still", func(t *testing.T) {
		sqlsuite.Today(t)
		s := newFixture(t, db, sqlstore.Options{})
		young, old := uuid(-1, 1), uuid(-9, 2)
		s.processAll(t, store.Applied, young, old)
		s.processAll(t, store.Parked, uuid(-9, 3))
		o := sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: 2}
		if _, err := s.store.Dated(t.Context(), o); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "move them") {
			t.Errorf("without asking for it: %v", err)
		}
		o.Move = true
		st, err := s.store.Dated(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s.store, s.Instance.Store = st, st
		wantVerdicts(t, s.processAll(t, store.Applied, young, old, uuid(-9, 3), uuid(-9, 4), uuid(0, 5)), isApplied, isApplied, isParked, isOld, isFresh)
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_T80_with_the_rows_of_what_lies_outside", func(t *testing.T) {
		sqlsuite.Today(t)
		s := newFixture(t, db, sqlstore.Options{})
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", uuid(-9, 1), uuid(0, 2), uuid(40, 3))
		rows := make([]store.Row, len(marks))
		for i := range marks {
			marks[i].As = store.Parked
			rows[i] = store.Row{Mark: i, State: store.StateParked, Message: &semel.Message{}}
		}
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
		if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
			t.Fatalf("the commit says %+v", r)
		}
		st, err := s.store.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: 2, Move: true})
		if err != nil {
			t.Fatal(err)
		}
		moved, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(moved) != 3 {
			t.Fatal(moved, err)
		}
		for _, r := range moved { // a row without its marker could not be retried
			if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me", Why: "it"}, r.Seen())...); err != nil {
				t.Errorf("%s: %v", r.Key.ID, err)
			}
		}
	})
	t.Run("A7_not_where_ids_are_spelled_in_another_case", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.processAll(t, store.Applied, strings.ToUpper("0190a5e2-7d0b-7c3e-8f00-0123456789ab"))
		if _, err := s.store.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: 2, Move: true}); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "differ in case") {
			t.Errorf("the error is %v", err)
		}
	})
}
