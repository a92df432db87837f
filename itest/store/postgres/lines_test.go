package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
)

// aLongLine creates many rows that wait behind the first row of one lane, and a thousand other rows.
var aLongLine = []string{
	`insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error, line, place)
select 1, (select number from in.semel_scopes), ('\x00'::bytea || n::text::bytea), '', 0, false, case n % 100000 when 0 then 'PARKED' else 'BLOCKED' end, 'behind another', '', 0, n, '', '', '', '{}', ''::bytea,
  now(), now(), 0, 0, 0, '', '', case when n < 100000 then 'a'::bytea else (n % 1000)::text::bytea end, n + 1
from generate_series(0, 199999) n`,
	"insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, 2, 0, now() from in.semel_inbox",
	"insert into in.semel_lines (name, tail) select line, max(place) from in.semel_inbox group by line",
	"insert into in.semel_lines (name, tail) select ('other ' || n)::bytea, 1 from generate_series(1, 100000) n",
	"analyze in.semel_inbox", "analyze in.semel_markers", "analyze in.semel_lines",
}

func TestALineWithManyFollowers(t *testing.T) {
	db := newDatabase(t)
	s := newFixture(t, db, sqlstore.Options{})
	if _, err := s.store.Scope(t.Context(), "history", "", 0); err != nil {
		t.Fatal(err)
	}
	s.execAll(t, aLongLine)
	sql := sqlstore.Statements(s.store, sqlform.Revision12{})
	for name, c := range map[string]struct {
		text string
		args []any
	}{
		"C8_D8_is_not_read_whole_when_its_first_ends":        {sql.AdvanceLines, []any{"{1}"}},
		"C8_D8_is_not_read_whole_to_lock_it":                 {sql.LeaveLines, []any{"{1}", `{"a", "other 7"}`}},
		"C8_D8_is_not_read_whole_when_a_follower_is_added":   {sql.EnterLines, []any{"{1}", `{"\\x0039"}`, `{"a"}`, "{0}"}},
		"C8_is_not_read_whole_when_somebody_asks_for_it":     {sql.BusyLines, []any{`{"a", "b", "100001"}`}},
		"C8_law_11_is_not_read_whole_by_a_sweep":             {sql.SweepLines, nil},
		"C8_law_11_is_not_read_whole_to_take_some_out_of_it": {sql.DissolveRows, []any{`\x61`, `\x62`, 1000}},
		"C8_is_not_read_whole_when_its_first_is_looked_for":  {sql.FirstInLine, []any{777}},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			text := plan(t, tx, "explain (analyze, buffers) "+c.text, c.args...)
			if strings.Contains(text, "Seq Scan") || strings.Contains(text, "rows=100000 ") || strings.Contains(text, "rows=99999 ") {
				t.Errorf("the plan:\n%s", text)
			}
		})
	}
}
