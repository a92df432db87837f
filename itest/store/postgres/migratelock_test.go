package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
)

// olderInbox undoes the migrations that an earlier release of a store did not know.
func olderInbox(t *testing.T, s *shop) {
	s.execAll(t, []string{
		"delete from in.semel_migrations where version >= 25", "drop index in.semel_inbox_due", "drop index in.semel_scopes_low",
		"alter table in.semel_inbox drop column consumer",
	})
}

func TestAMigrationBesideALongTransaction(t *testing.T) {
	t.Run("L5_others_work_while_it_waits_for_a_table", func(t *testing.T) {
		s := newShop(t, fresh(t), sqlstore.Options{})
		olderInbox(t, s)
		report, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = report.Rollback() }()
		if _, err := report.ExecContext(t.Context(), s.in("select count(*) from in.semel_inbox")); err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() {
			_, err := s.store.Migrate(context.WithoutCancel(t.Context()))
			result <- err
		}()
		s.waits(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := s.db.ExecContext(ctx, s.in("delete from in.semel_inbox")); err != nil {
			t.Errorf("behind the migration that waits: %v", err)
		}
		if err := report.Rollback(); err != nil && err != sql.ErrTxDone {
			t.Fatal(err)
		}
		if err := <-result; err != nil {
			t.Errorf("once the table was free: %v", err)
		}
	})
	t.Run("trap_T80_the_indexes_of_a_table_with_rows_are_built_beside_those_that_write", func(t *testing.T) {
		s := newShop(t, fresh(t), sqlstore.Options{})
		manySources(t, s, 10)
		olderInbox(t, s)
		if _, err := s.store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, index := range []string{"in.semel_inbox_due", "in.semel_scopes_low"} {
			if !one[bool](t, s.db, "select indisvalid from pg_index where indexrelid = $1::regclass", s.in(index)) {
				t.Errorf("the index %s is not valid", index)
			}
		}
	})
}
