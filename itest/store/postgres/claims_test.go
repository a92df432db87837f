package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// SQL that creates many waiting rows of two consumers, and the same number of finished rows.
const waitingRows = `insert into in.semel_inbox (revision, scope, consumer, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, started, finished, repeated, first_error, last_error)
select 1, s.number, s.consumer, ('\x00'::bytea || n::text::bytea), '', 0, false,
  case when n % 2 = 0 then 'RECEIVED' else 'COMPLETED' end, '', '', 0, n, '', '', '', '{}', repeat('x', 500)::bytea, now(), now(),
  now() - n * interval '1 millisecond', 0, 0, 0, '', ''
from generate_series(1, 100000) n join in.semel_scopes s on s.consumer = case n % 4 when 0 then 'billing'::bytea else 'audit'::bytea end`

func TestClaimsReadNoMoreThanTheyTake(t *testing.T) {
	db := newDatabase(t)
	t.Run("D3_an_inbox_of_many_rows_is_not_read_whole_for_a_claim", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		for _, consumer := range []string{"billing", "audit"} {
			if _, err := s.store.Scope(t.Context(), consumer, "", 0); err != nil {
				t.Fatal(err)
			}
		}
		s.exec(t, waitingRows)
		s.exec(t, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, case state when 'RECEIVED' then 2 else 1 end, 0, now() from in.semel_inbox")
		s.exec(t, "analyze in.semel_inbox")
		s.exec(t, "analyze in.semel_markers")
		if text := plan(t, db, "explain (analyze, buffers) "+sqlstore.Statements(s.store, sqlform.Revision12{}).Claim,
			true, []byte("billing"), int64(store.NewToken()), 100, int64(0), int64(30_000), ""); strings.Contains(text, "Seq Scan on semel_inbox") || !strings.Contains(text, "semel_inbox_due") {
			t.Errorf("the plan:\n%s", text)
		}
		s.findsByNumber(t, db)
	})
	t.Run("D3_nor_one_without_statistics_which_has_grown_since_plans_were_made", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		for _, consumer := range []string{"billing", "audit"} {
			if _, err := s.store.Scope(t.Context(), consumer, "", 0); err != nil {
				t.Fatal(err)
			}
		}
		// without autovacuum, no process creates statistics of the tables during the test
		for _, table := range []string{"inbox", "markers"} {
			s.exec(t, "alter table in.semel_"+table+" set (autovacuum_enabled = false)")
		}
		s.findsByNumber(t, db)
		s.exec(t, strings.Replace(waitingRows, "100000", "400", 1))
		s.exec(t, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, case state when 'RECEIVED' then 2 else 1 end, 0, now() from in.semel_inbox")
		s.findsByNumber(t, db)
	})
}

// findsByNumber checks the query plans of the statements for claims. The server must find each row by its number and
// each marker by its identity.
func (s *fixture) findsByNumber(t *testing.T, db *sql.DB) {
	t.Helper()
	endings := []store.ClaimEnding{{Claim: store.Claim{Number: 4, Token: 1}, State: store.StateCompleted}, {Claim: store.Claim{Number: 8, Token: 1}, State: store.StateCompleted}}
	some := []any{sqlform.EndingsArgument(sqlform.Crypt{}, endings)}
	statements := sqlstore.Statements(s.store, sqlform.Revision12{})
	_, one := sqlform.ClosingClaims(sqlform.Crypt{}, statements, endings[:1])
	for name, c := range map[string]struct {
		statement string
		args      []any
	}{
		"judge": {statements.Judge, []any{"{0,1}", "{1,1}", `{"\\x00","\\x01"}`, `{"",""}`}}, "trim": {statements.Trim, []any{"{1,1}", `{"\\x00","\\x01"}`}},
		"look": {statements.Look, some}, "end": {statements.EndClaims, some}, "close": {statements.CloseClaims, some}, "start": {statements.StartClaims, some},
		"call": {statements.StartCalls, append(some, 1000)}, "extend": {statements.Extend, append(some, 1000)}, "retake": {statements.Reclaim, []any{"[4,8]", "[1]", 2}},
		"close one": {statements.CloseClaim, one}, "begin": {statements.BeginClaims, []any{"{4,8}", "{1,1}", "1000", "1000", "0"}},
		"begin queued": {statements.BeginQueuedClaims, []any{"{4,8}", "{1,1}", "1000", "1000", "0"}},
	} {
		text := keptPlan(t, db, c.statement, c.args...)
		if !strings.Contains(text, "semel_inbox_pkey") && !strings.Contains(text, "semel_markers_pkey") || strings.Contains(text, "Seq Scan on semel_") || strings.Contains(text, "semel_inbox_state") {
			t.Errorf("the plan of %s, which has to find rows by their numbers:\n%s", name, text)
		}
	}
}

// keptPlan returns the generic plan that a connection keeps for a statement, which does not depend on the
// arguments.
func keptPlan(t *testing.T, db *sql.DB, statement string, args ...any) string {
	t.Helper()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	values := make([]string, len(args))
	for i := range args {
		values[i] = "'" + fmt.Sprint(args[i]) + "'"
	}
	for _, before := range []string{"set plan_cache_mode = force_generic_plan", "prepare kept as " + statement} {
		if _, err := c.ExecContext(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	text := plan(t, c, "explain execute kept("+strings.Join(values, ", ")+")")
	for _, after := range []string{"deallocate kept", "reset plan_cache_mode"} {
		if _, err := c.ExecContext(t.Context(), after); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// plan returns the output of an explain statement.
func plan(t *testing.T, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, statement string, args ...any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
