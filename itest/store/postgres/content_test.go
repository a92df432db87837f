package postgres

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestWhatADatabaseRefusesIsTheMessagesFault(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	s.exec(t, "create table in.mine (name text, doc jsonb, number int check (number < 10))")
	s.exec(t, `create function in.refuse() returns trigger language plpgsql as
		$$ begin raise exception 'duplicate key value violates unique constraint "the_name"'; end $$`)
	s.exec(t, "create table in.guarded (id int)")
	s.exec(t, "create trigger refuse before insert on in.guarded for each row execute function in.refuse()")
	refused := func(t *testing.T, state, statement string, args ...any) error {
		t.Helper()
		b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "a"))
		defer b.Rollback(t.Context())
		_, err := b.Tx(0).ExecContext(t.Context(), s.inSchema(statement), args...)
		s.expectError(t, err, store.ClassPermanent, state)
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the batch does not know that it is broken")
		}
		return err
	}
	t.Run("trap_80_nul_in_text_and_json", func(t *testing.T) {
		refused(t, "22021", "insert into in.mine (name) values ($1)", "a\x00b")
		refused(t, "22P05", "insert into in.mine (doc) values ($1)", `{"a":"\u0000"}`)
	})
	t.Run("trap_81_lone_surrogates_broken_utf8_and_numbers_beyond_numeric", func(t *testing.T) {
		refused(t, "22P02", "insert into in.mine (doc) values ($1)", `{"a":"\ud800"}`)
		refused(t, "22021", "insert into in.mine (name) values ($1)", "\xff\xfe")
		refused(t, "22003", "insert into in.mine (doc) values ($1)", `{"a":1e400000}`)
	})
	t.Run("trap_T10_a_refusal_by_a_trigger_is_not_taken_for_what_its_text_says", func(t *testing.T) {
		err := refused(t, "P0001", "insert into in.guarded values (1)")
		if sqlstore.Violates(err, "the_name") {
			t.Error("a text decides what an error is")
		}
	})
	t.Run("B3_a_unique_constraint_is_told_by_its_name", func(t *testing.T) {
		err := refused(t, "23505", "insert into in.once values ('there')")
		if !sqlstore.Violates(fmt.Errorf("inserting: %w", err), "the_name") || sqlstore.Violates(err, "another") {
			t.Errorf("%v does not violate the_name alone", err)
		}
		if err := refused(t, "23514", "insert into in.mine (number) values (11)"); sqlstore.Violates(err, "mine_number_check") {
			t.Error("a check counts as a unique constraint")
		}
	})
	s.expectWorks(t, s.makeMarks(t, "a"))
}

func TestRowsKeepWhatCame(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("trap_83_a_body_comes_back_byte_for_byte", func(t *testing.T) {
		bodies := []string{`{"b":1, "a":2,  "a":3}`, "\x00\xff", `{"n":1e400000,"s":"\ud800"}`, "", "1.0"}
		marks := s.makeMarks(t, "a", "b", "c", "d", "e")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		var rows []store.Row
		for i, body := range bodies {
			marks[i].As = store.Parked
			rows = append(rows, store.Row{Mark: i, State: store.StateParked, Reason: "\x00\xff", FirstError: "\x00",
				Message: &semel.Message{Body: []byte(body), Topic: "\x00\xff", Headers: semel.Headers{{Name: "\xff", Value: []byte{0}}}}})
		}
		if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		found, err := s.store.Rows(t.Context(), store.RowFilter{Bodies: true})
		if err != nil || len(found) != len(bodies) {
			t.Fatal(found, err)
		}
		for i, r := range found {
			if string(r.Message.Body) != bodies[i] || r.Message.Topic != "\x00\xff" || r.Message.Headers[0].Name != "\xff" {
				t.Errorf("%q comes back as %+v", bodies[i], r.Message)
			}
		}
	})
}

func TestTimesAndNumbers(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("trap_102_times_are_of_the_moment_and_not_of_the_transactions_start", func(t *testing.T) {
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("select now()"); err != nil {
			t.Fatal(err)
		}
		if v, err := s.store.MarkIn(t.Context(), tx, s.makeMarks(t, "late")); err != nil || v[0].Kind != store.Fresh {
			t.Fatal(v, err)
		}
		var later bool
		if err := tx.QueryRow(s.inSchema("select at > now() from in.semel_markers where id = '\\x006c617465'")).Scan(&later); err != nil || !later {
			t.Errorf("the marker's time is the transaction's start: %t, %v", later, err)
		}
	})
	t.Run("trap_103_a_row_that_commits_late_with_an_early_number_is_found", func(t *testing.T) {
		park := func(id string) store.Batch[*sql.Tx] {
			marks := s.makeMarks(t, id)
			marks[0].As = store.Parked
			b, _ := s.begin(t, store.TxOptions{}, marks)
			return b
		}
		ending := store.Ending{Rows: []store.Row{{Mark: 0, State: store.StateParked, Message: &semel.Message{}}}}
		if r := park("first").Commit(t.Context(), ending); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		early, late := park("early"), park("later")
		// The transaction of the batch early gets its row numbers first and commits last.
		if _, err := early.Tx(0).Exec(s.inSchema(copyRow), []byte("\x00early too")); err != nil {
			t.Fatal(err)
		}
		var seen [2][]store.StoredRow
		for i, b := range []store.Batch[*sql.Tx]{late, early} {
			if r := b.Commit(t.Context(), ending); r.Outcome != store.Committed {
				t.Fatal(r)
			}
			var err error
			if seen[i], err = s.store.Rows(t.Context(), store.RowFilter{States: []store.RowState{store.StateParked}}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(seen[1]) - len(seen[0]); n != 2 {
			t.Errorf("%d rows came to light, want 2", n)
		}
	})
}

// A statement that inserts a copy of an existing row.
const copyRow = `insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
	broker_id, type, schema, envelope, received_at, changed_at, started, finished, repeated, first_error, last_error)
	select 1, scope, $1, conflict, version, surrogate, state, reason, topic, partition, "offset", broker_id, type, schema, envelope,
	received_at, changed_at, started, finished, repeated, first_error, last_error from in.semel_inbox limit 1`
