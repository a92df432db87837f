package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// waitLocked returns when the given number of transactions wait for a lock.
func (s *fixture) waitLocked(t *testing.T, transactions int) {
	t.Helper()
	const text = "select count(distinct pid) from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())"
	for began := time.Now(); ; {
		switch n := queryOne[int](t, s.db, text); {
		case n >= transactions:
			return
		case time.Since(began) > time.Minute:
			t.Fatalf("%d transactions wait for a lock, want %d", n, transactions)
		}
	}
}

func TestTwoBatchesThatEnterOneLineAtOnce(t *testing.T) {
	t.Run("C8_law_8_one_is_first_and_the_other_waits_behind_it", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		var batches []store.Batch[*sql.Tx]
		for _, id := range []string{"a", "b"} {
			marks := sqlsuite.Marks[*sql.Tx](t, s.store, "shop", id)
			marks[0].As, marks[0].Line = store.Waiting, []byte("l")
			b, v := sqlsuite.Begin[*sql.Tx](t, s.store, store.TxOptions{}, marks)
			wantVerdicts(t, v, isFresh)
			batches = append(batches, b)
		}
		s.exec(t, "insert into in.semel_lines (name, tail) values ('l', 0)")
		holder, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Rollback() }()
		if _, err := holder.ExecContext(t.Context(), s.inSchema("select 1 from in.semel_lines for update")); err != nil {
			t.Fatal(err)
		}
		results := make(chan store.Result, 2)
		for _, b := range batches {
			go func() {
				row := store.Row{State: store.StateReceived, Message: &semel.Message{Body: []byte("x")}}
				results <- b.Commit(context.WithoutCancel(t.Context()), store.Ending{Rows: []store.Row{row}})
			}()
		}
		s.waitLocked(t, 2) // both transactions have inserted their rows, and neither row is in its lane yet
		if err := holder.Rollback(); err != nil {
			t.Fatal(err)
		}
		for range batches {
			if r := <-results; r.Outcome != store.Committed {
				t.Fatalf("%+v", r)
			}
		}
		rows, err := s.store.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		states := map[store.RowState]int{rows[0].State: 1}
		states[rows[1].State]++
		if states[store.StateReceived] != 1 || states[store.StateBlocked] != 1 || rows[0].Place == rows[1].Place {
			t.Errorf("the rows are %s at %d and %s at %d", rows[0].State, rows[0].Place, rows[1].State, rows[1].Place)
		}
	})
}
