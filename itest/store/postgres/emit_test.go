package postgres

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

// minute moves the times of sent intents one minute back.
func (s *fixture) minute(t testing.TB) {
	t.Helper()
	s.exec(t, "update in.semel_inbox set processed_at = processed_at - interval '61 seconds'")
}

func TestIntentsThatAreSentAgain(t *testing.T) {
	db := newDatabase(t)
	t.Run("C12_law_1_by_two_processes_at_once", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		sqlsuite.Emission[*sql.Tx]{Store: s.store, Sender: s.store, ID: "1", Pass: s.minute}.Sends(t)
	})
	t.Run("C12_law_1_of_a_consumer_that_marks_in_a_table_of_the_users", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		all := s.store
		s.adoptAny(t)
		sqlsuite.Emission[*sql.Tx]{Store: s.store, Sender: all, ID: "1", Pass: s.minute}.Sends(t)
	})
	t.Run("C12_law_1_of_a_consumer_whose_markers_lie_in_days", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		all := s.store
		s.useDailyPartitions(t, 6)
		sqlsuite.Emission[*sql.Tx]{Store: s.store, Sender: all, ID: uuid(0, 1), Pass: s.minute,
			Retention: consumer.RetentionPolicy{Keep: 2 * aDay, IDTime: identity.UUIDv7, DailyPartitions: true}}.Sends(t)
	})
}

func TestTheIndexOfCauses(t *testing.T) {
	t.Run("trap_T80_is_built_beside_those_that_write_where_there_are_rows", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		for _, broken := range []string{
			"drop index in.semel_inbox_cause",
			// an invalid index, as after an interrupted build of the index
			"update pg_index set indisvalid = false where indexrelid = 'in.semel_inbox_cause'::regclass",
		} {
			s.exec(t, broken)
			if _, err := s.store.Emit(t.Context(), admin.EmitOptions{}); err == nil || !strings.Contains(err.Error(), "semel migrate up") {
				t.Errorf("%s: it can send again: %v", broken, err)
			}
			if _, err := s.store.Migrate(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			if _, err := s.store.Emit(t.Context(), admin.EmitOptions{}); err != nil {
				t.Errorf("after the migration: %v", err)
			}
		}
	})
	t.Run("C12_what_a_message_caused_is_found_by_it", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		s.exec(t, `insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset", broker_id, type, schema, envelope,
			received_at, changed_at, started, finished, repeated, first_error, last_error, cause)
			select 1, 1, int8send(n), '', 0, false, 'COMPLETED', '', '', 0, 0, '', '', '', '{}', now(), now(), 0, 0, 0, '', '', case when n % 10 = 0 then int8send(n / 20) end
			from generate_series(1, 20000) n`)
		s.exec(t, "analyze in.semel_inbox")
		causes := `{"\\x0000000000000007","\\x0000000000000008"}`
		if text := plan(t, s.db, "explain "+sqlstore.Statements(s.store, sqlform.Revision12{}).Caused, causes); !strings.Contains(text, "inbox_cause") {
			t.Error(text)
		}
	})
}
