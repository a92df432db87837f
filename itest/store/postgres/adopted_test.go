package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// simple is the simplest table of processed messages, with only a column for the id.
var simple = sqlstore.Adopted{Consumer: "billing", Table: "in.processed", ID: "message_id"}

const makeSimple = `create table in.processed (message_id text primary key, processed_at timestamptz default now())`

func newSimple(t testing.TB, db *sql.DB) *fixture {
	t.Helper()
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, makeSimple)
	return s.adopt(t, simple)
}

// countProcessed returns the number of rows that the table of processed messages has for an id.
func (s *fixture) countProcessed(t testing.TB, id string) int {
	t.Helper()
	return queryOne[int](t, s.db, s.inSchema("select count(*) from in.processed where message_id = $1"), id)
}

func (s *fixture) expectCounts(t testing.TB, id string, effects, rows int) {
	t.Helper()
	if e, r := s.Count(t, id), s.countProcessed(t, id); e != effects || r != rows {
		t.Errorf("%s has %d effects and %d rows, want %d and %d", id, e, r, effects, rows)
	}
}

func TestAdoption(t *testing.T) {
	db := newDatabase(t)
	t.Run("J2_rows_of_an_adopted_table_count_as_applied", func(t *testing.T) { oldRows(t, db) })
	t.Run("J2_what_is_applied_has_a_row_that_the_old_code_reads", func(t *testing.T) { newRows(t, db) })
	t.Run("J2_what_is_not_applied_has_no_row_in_an_adopted_table", func(t *testing.T) { noRows(t, db) })
	t.Run("J2_a_row_that_is_retried_is_judged_by_the_adopted_table", func(t *testing.T) { retriedRows(t, db) })
	t.Run("J2_an_id_that_the_column_cannot_hold_is_no_identity", func(t *testing.T) { processUnusable(t, db) })
	t.Run("J2_a_large_adopted_table_is_not_read_from_end_to_end", func(t *testing.T) { byIndex(t, db) })
	t.Run("J2_the_old_rows_have_no_fingerprint", func(t *testing.T) { noPrint(t, db) })
}

func oldRows(t *testing.T, db *sql.DB) {
	for _, old := range olds {
		if old.column == "char(10)" {
			continue
		}
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, `create table in.processed ("the Id" `+old.column+" primary key)")
		s.exec(t, "insert into in.processed values ("+old.value+")")
		a := simple
		a.ID = "the Id"
		s.adopt(t, a)
		for range 2 { // in the second run the marker exists
			if v := s.verdict(t, old.id); !v.Already(store.Applied) {
				t.Errorf("%s: the verdict on %q is %s", old.column, old.id, v)
			}
			s.commitDeliveries(t, old.id)
		}
		if n := s.Count(t, old.id); n != 0 {
			t.Errorf("%s: %d effects of an old id", old.column, n)
		}
		next := map[bool]string{true: "018f3a2b-0000-7000-8000-00000000000b", false: "8"}[old.column == "uuid"]
		s.expectWorks(t, s.makeMarks(t, next))
		if n := queryOne[int](t, db, s.inSchema(`select count(*) from in.processed`)); n != 2 {
			t.Errorf("%s: %d rows", old.column, n)
		}
	}
}

// commitDeliveries commits a batch, whether its messages are new or not.
func (s *fixture) commitDeliveries(t testing.TB, ids ...string) {
	t.Helper()
	if r, err := s.attempt(t, s.makeMarks(t, ids...)); err != nil || r.Outcome != store.Committed {
		t.Fatal(r, err)
	}
}

func newRows(t *testing.T, db *sql.DB) {
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, `create table in.processed (number bigint generated always as identity primary key, message_id varchar(36) not null,
		handler text not null, origin text not null, state smallint not null check (state = 2), note text not null default 'none',
		at timestamp, unique (handler, origin, message_id))`)
	s.exec(t, "insert into in.processed (message_id, handler, origin, state) values ('1', 'other', 'shop', 2)")
	s.adopt(t, sqlstore.Adopted{Consumer: "billing", Table: "in.processed", ID: "message_id", ConsumerColumn: "handler",
		SourceColumn: "origin", AtColumn: "at", Values: map[string]string{"handler": `the "old" \ 'name'`, "state": "2"}})
	for _, source := range []string{"shop", "till"} {
		marks := s.makeMarks(t, "1", "2")
		for i := range marks {
			scope, err := s.store.Scope(t.Context(), "billing", source, 0)
			if err != nil {
				t.Fatal(err)
			}
			marks[i].Scope = scope
		}
		for range 2 {
			if r, err := s.attempt(t, marks); err != nil || r.Outcome != store.Committed {
				t.Fatal(r, err)
			}
		}
	}
	rows := queryOne[string](t, db, s.inSchema(`select string_agg(origin || message_id || note || state, ' ' order by number) from in.processed
		where handler = $1 and at is not null`), `the "old" \ 'name'`)
	if rows != "shop1none2 shop2none2 till1none2 till2none2" {
		t.Errorf("the rows are %s", rows)
	}
	if n := s.Count(t, "1"); n != 2 {
		t.Errorf("%d effects of the id of two sources", n)
	}
}

// noRows checks that trimmed, parked and rolled back messages leave the user's table unchanged, even if the program
// that Semel replaces has inserted a row at the same time.
func noRows(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "trimmed", "parked", "applied"))
	if err := s.Effect(t.Context(), b.Tx(2), "applied"); err != nil {
		t.Fatal(err)
	}
	end := store.Ending{Trim: []int{0}, Rows: []store.Row{{Mark: 1, State: store.StateParked, Message: &semel.Message{}}}}
	if r := b.Commit(t.Context(), end); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	b, _ = s.begin(t, store.TxOptions{}, s.makeMarks(t, "rolled back"))
	b.Rollback(t.Context())
	only := s.makeMarks(t, "only parked", "parked and trimmed")
	only[0].As, only[1].As = store.Parked, store.Parked
	b, v := s.begin(t, store.TxOptions{}, only)
	s.exec(t, "insert into in.processed select unnest('{only parked,parked and trimmed}'::text[])")
	end = store.Ending{Trim: []int{1}, Rows: []store.Row{{State: store.StateDiscarded, Message: &semel.Message{}}}}
	if r := b.Commit(t.Context(), end); r.Outcome != store.Committed || v[0].Kind != store.Fresh {
		t.Fatal(r, v)
	}
	for id, rows := range map[string]int{"trimmed": 0, "parked": 0, "applied": 1, "rolled back": 0, "only parked": 1, "parked and trimmed": 1} {
		if n := s.countProcessed(t, id); n != rows {
			t.Errorf("%s has %d rows, want %d", id, n, rows)
		}
	}
	for id, want := range map[string]string{"trimmed": "fresh", "parked": "already parked", "applied": "already applied",
		"rolled back": "fresh", "only parked": "already discarded", "parked and trimmed": "already applied"} {
		if v := s.verdict(t, id); v.String() != want {
			t.Errorf("the verdict on %s is %s, want %s", id, v, want)
		}
	}
}

func retriedRows(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	marks := s.makeMarks(t, "first", "second")
	b, _ := s.begin(t, store.TxOptions{}, marks)
	var rows []store.Row
	for i := range marks {
		rows = append(rows, store.Row{Mark: i, State: store.StateParked, Message: &semel.Message{}})
	}
	if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	s.exec(t, "insert into in.processed values ('second')") // the program that Semel replaces inserts a row now
	stored, err := s.store.Rows(t.Context(), store.RowFilter{})
	if err != nil || len(stored) != 2 {
		t.Fatal(stored, err)
	}
	for _, r := range stored {
		if err := errors.Join(s.store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me"}, r.Seen())...); err != nil {
			t.Fatal(err)
		}
	}
	running, err := consumer.New(s.store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return s.effect(ctx, tx, m.Identity.ID)
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone()})
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Work(t.Context()); err != nil || running.Counts().Inbox.Applied != 1 {
		t.Errorf("%v, %+v", err, running.Counts())
	}
	s.expectCounts(t, "first", 1, 1)
	s.expectCounts(t, "second", 0, 1)
}

// processUnusable makes a consumer process messages with unusable ids.
func processUnusable(t *testing.T, db *sql.DB) {
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, "create table in.processed (message_id uuid primary key)")
	s.adopt(t, simple)
	running, err := consumer.New(s.store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return s.effect(ctx, tx, m.Identity.ID)
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone()})
	if err != nil {
		t.Fatal(err)
	}
	const id = "018f3a2b-0000-7000-8000-00000000000a"
	for _, text := range []string{strings.ToUpper(id), id, "order-7", strings.Repeat("0", 36)} {
		m := &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(text)}}, Body: []byte(text)}
		if d, err := running.Process(t.Context(), m); err != nil || d.Kind != semel.Ack {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
	if n := s.Count(t, id); n != 1 {
		t.Errorf("%d effects of one UUID in two spellings", n)
	}
	rows, err := s.store.Rows(t.Context(), store.RowFilter{})
	if err != nil || len(rows) != 2 || rows[0].Reason != semel.ReasonBadIdentity || !strings.Contains(rows[0].FirstError, "no UUID") {
		t.Errorf("%+v, %v", rows, err)
	}
}

func noPrint(t *testing.T, db *sql.DB) {
	s := newSimple(t, db)
	s.exec(t, "insert into in.processed values ('old')")
	marks := s.makeMarks(t, "old", "new")
	for i := range marks {
		marks[i].Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	}
	b, v := s.begin(t, store.TxOptions{}, marks)
	if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed || !v[0].Already(store.Applied) || v[1].Kind != store.Fresh {
		t.Fatal(r, v)
	}
	for i := range marks {
		marks[i].Fingerprint.Sum = [16]byte{2}
	}
	b, v = s.begin(t, store.TxOptions{}, marks)
	b.Rollback(t.Context())
	if !v[0].Already(store.Applied) || v[1].Kind != store.Conflict {
		t.Errorf("other content: %+v", v)
	}
}

// byIndex checks that the store finds rows with the index of the user's table. If an expression had another
// collation than the column, the server could not use the index.
func byIndex(t *testing.T, db *sql.DB) {
	for _, kind := range []string{"text", `text collate "und-x-icu"`, "varchar(40)", "uuid", "bytea", "bigint"} {
		s := newFixture(t, db, sqlstore.Options{})
		value := map[string]string{"bytea": "convert_to(n::text, 'UTF8')", "bigint": "n", "uuid": "gen_random_uuid()"}[kind]
		if value == "" {
			value = "n::text"
		}
		s.exec(t, "create table in.processed (message_id "+kind+" primary key)")
		s.exec(t, "insert into in.processed select "+value+" from generate_series(1, 50000) n")
		s.exec(t, "analyze in.processed")
		s.adopt(t, simple)
		marks := s.makeMarks(t, "018f3a2b-0000-7000-8000-00000000000b")
		plan := s.plan(t, sqlstore.Statements(s.store, sqlform.Revision12{}).Mark, fmt.Sprint(marks[0].Scope))
		if strings.Contains(plan, "Seq Scan on processed") || !strings.Contains(plan, "processed_pkey") {
			t.Errorf("%s:\n%s", kind, plan)
		}
	}
}

// plan returns the server's plan for a statement about markers with UUIDs as ids.
func (s *fixture) plan(t *testing.T, statement, scope string) string {
	t.Helper()
	return plan(t, s.db, "explain "+statement, "{"+scope+"}", `{"\\x01018f3a2b00007000800000000000000b"}`, "{1}", "{0}", "{NULL}", "{NULL}")
}
