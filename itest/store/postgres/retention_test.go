package postgres

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// SQL that creates the markers of a year, and as many markers for another consumer. One marker in a thousand belongs to
// a parked row.
var oldMarkers = []string{
	`insert into in.semel_markers (scope, id, outcome, version, at)
select (select number from in.semel_scopes where consumer = case n % 2 when 0 then 'billing'::bytea else 'audit'::bytea end),
  '\x00'::bytea || n::text::bytea, case when n % 1000 = 0 then 3 else 1 end, 0, now() - n * interval '5 minutes'
from generate_series(1, 100000) n`,
	`insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
select 1, scope, id, '', 0, false, 'PARKED', '', '', 0, 0, '', '', '', '{}', 'x', at, at, 0, 0, 0, '', ''
from in.semel_markers where outcome = 3`,
	"analyze in.semel_markers", "analyze in.semel_inbox",
}

// newRetentionFixture returns a store whose consumer "billing" has the retention keep and has just recorded its
// progress.
func newRetentionFixture(t *testing.T, db *sql.DB, keep time.Duration) *fixture {
	t.Helper()
	s := newFixture(t, db, sqlstore.Options{})
	for _, consumer := range []string{"billing", "audit"} {
		if _, err := s.store.Scope(t.Context(), consumer, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range oldMarkers {
		s.exec(t, statement)
	}
	if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: keep}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *fixture) countMarkers(t *testing.T, consumer string) (n int) {
	t.Helper()
	err := s.db.QueryRowContext(t.Context(), s.inSchema("select count(*) from in.semel_markers m join in.semel_scopes s on s.number = m.scope where s.consumer = $1"), []byte(consumer)).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const month = 30 * 24 * time.Hour

// youngMarkers is the number of markers that are younger than a month. The constant parkedAll is the number of
// markers of parked rows.
const youngMarkers, parkedAll = 30 * 24 * 60 / 5 / 2, 50000 * 2 / 1000

func TestTheReaperReadsNoMoreThanItRemoves(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T69_no_table_is_read_whole", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		if _, err := s.store.Advance(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		statements := sqlstore.Statements(s.store, sqlform.Revision12{})
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		rows, err := tx.QueryContext(t.Context(), statements.Patience, []byte("billing"))
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		for name, text := range map[string]string{
			"reap":       plan(t, tx, "explain (analyze, buffers) "+statements.Reap, []byte("billing"), "(2,5)", "(12,0)", 1000),
			"reap rows":  plan(t, tx, "explain (analyze, buffers) "+statements.ReapRows, []byte("billing"), "(2,5)", "(12,0)", 1000),
			"place":      plan(t, tx, "explain (analyze, buffers) "+statements.Place, []byte("billing"), int64(0)),
			"bodies":     plan(t, tx, "explain (analyze, buffers) "+statements.ReapBodies, []byte("billing"), 1000),
			"first due":  plan(t, tx, "explain (analyze, buffers) "+statements.FirstDue, []byte("billing"), time.Now().UnixMicro()),
			"the marks'": plan(t, tx, "explain (analyze, buffers) "+statements.Low, "{1,2}"),
		} {
			if strings.Contains(text, "Seq Scan on semel_markers") || strings.Contains(text, "Seq Scan on semel_inbox") {
				t.Errorf("%s reads a table whole:\n%s", name, text)
			}
			if read := removedByFilter(text); read > 10*150 { // rows of ten blocks
				t.Errorf("%s reads %d rows in vain:\n%s", name, read, text)
			}
			if strings.HasPrefix(name, "reap") && strings.Count(text, "Tid Range Scan on semel_markers") != 1 {
				t.Errorf("%s does not read the blocks that it is given:\n%s", name, text)
			}
		}
	})
}

func TestAReaperOfTheDatabasesOwn(t *testing.T) {
	db := newDatabase(t)
	t.Run("H3_the_procedure_that_is_printed_removes_what_a_reaper_does", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		var text strings.Builder
		if err := s.store.PrintReaper(&text, []string{"billing"}); err != nil {
			t.Fatal(err)
		}
		procedure, call, found := strings.Cut(text.String(), "$procedure$;\n")
		if !found {
			t.Fatalf("it prints:\n%s", text.String())
		}
		if _, err := db.ExecContext(t.Context(), procedure+"$procedure$"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		young := s.countMarkers(t, "billing")
		if most := youngMarkers + parkedAll; young < youngMarkers || young > most {
			t.Errorf("%d markers are left, want %d to %d", young, youngMarkers, most)
		}
		if n := s.countMarkers(t, "audit"); n != 50000 {
			t.Errorf("of another consumer %d markers are left", n)
		}
		if k, err := s.store.Retentions(t.Context(), "billing"); err != nil || k[0].Low.IsZero() || !k[0].First.IsZero() && k[0].First.Before(k[0].Low) {
			t.Errorf("%+v, %v", k, err)
		}
		again, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 1000})
		if err != nil || again.Markers != 0 {
			t.Errorf("a reaper finds %+v, %v", again, err)
		}
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour, Off: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if n := s.countMarkers(t, "billing"); n != young {
			t.Errorf("it was switched off, and %d of %d are left", n, young)
		}
	})
}

func TestReapersAtOnce(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T66_trap_T31_of_many_that_reap_one_does", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		if _, err := s.store.Advance(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		var mutex sync.Mutex
		var removed, elsewhere int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for next := (store.ReapMark{}); !next.Done; {
					r, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 500, After: next})
					if err != nil {
						t.Error(err)
						return
					}
					mutex.Lock()
					removed += r.Markers
					if r.Elsewhere {
						elsewhere++
					}
					mutex.Unlock()
					if next = r.Next; r.Elsewhere {
						return
					}
				}
			})
		}
		all.Wait()
		if left := int64(s.countMarkers(t, "billing")); removed+left != 50000 || removed == 0 {
			t.Errorf("%d were removed, %d are left", removed, left)
		}
		t.Logf("%d calls found another at it", elsewhere)
	})
	t.Run("trap_T66_who_comes_second_is_told_and_another_consumer_goes_on", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		for _, consumer := range []string{"billing", "audit"} {
			if err := s.store.Retain(t.Context(), store.Retention{Consumer: consumer, Keep: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		first, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = first.Rollback() }()
		rows, err := first.QueryContext(t.Context(), sqlstore.Statements(s.store, sqlform.Revision12{}).Patience, []byte("billing"))
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		for consumer, want := range map[string]bool{"billing": true, "audit": false} {
			if r, err := s.store.Reap(t.Context(), store.Reaping{Consumer: consumer, Most: 10}); err != nil || r.Elsewhere != want {
				t.Errorf("%s: %+v, %v", consumer, r, err)
			}
		}
	})
	t.Run("trap_114_115_a_marker_that_a_transaction_holds_is_passed_over", func(t *testing.T) {
		s := newRetentionFixture(t, newDatabase(t), month)
		held, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = held.Rollback() }()
		if _, err := held.ExecContext(t.Context(), s.inSchema("update in.semel_markers set outcome = outcome where at < now() - interval '300 days'")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.Advance(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for next := (store.ReapMark{}); !next.Done; {
			r, err := s.store.Reap(ctx, store.Reaping{Consumer: "billing", Most: 5000, After: next})
			if err != nil {
				t.Fatal(err)
			}
			next = r.Next
		}
		if n := s.countMarkers(t, "billing"); n < 50000-300*24*12/2 || n > 50000-200*24*12/2 {
			t.Errorf("%d markers are left, and those of the last month and from 300 days on should be", n)
		}
	})
}

func TestTheIndexesOfTheReaper(t *testing.T) {
	t.Run("trap_T80_they_are_built_beside_those_that_write_where_there_are_rows", func(t *testing.T) {
		s := newRetentionFixture(t, newDatabase(t), month)
		for _, broken := range []string{
			"drop index in.semel_inbox_bodies",
			// an invalid index, as after an interrupted build of the index
			"update pg_index set indisvalid = false where indexrelid = 'in.semel_inbox_bodies'::regclass",
		} {
			s.exec(t, broken)
			if _, err := s.store.Advance(t.Context(), "billing"); err == nil || !strings.Contains(err.Error(), "semel migrate up") {
				t.Errorf("%s: Advance says %v", broken, err)
			}
			if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: month}); err == nil || !strings.Contains(err.Error(), "semel migrate up") {
				t.Errorf("%s: Retain says %v", broken, err)
			}
			writer, err := s.db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := writer.ExecContext(t.Context(), s.inSchema("update in.semel_inbox set repeated = 1 where id = '\\x0031303030'")); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { _, err := s.store.Migrate(context.WithoutCancel(t.Context())); ended <- err }()
			// The build of the index waits for an earlier writer. A later writer does not wait for the
			// build.
			if _, err := s.db.ExecContext(t.Context(), s.inSchema("update in.semel_inbox set repeated = 1 where id = '\\x0032303030'")); err != nil {
				t.Fatal(err)
			}
			if err := writer.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if _, err := s.store.Advance(t.Context(), "billing"); err != nil {
				t.Errorf("after the migration Advance says %v", err)
			}
		}
	})
}

// removedByFilter returns the largest number of rows that a step of a plan read and discarded.
func removedByFilter(plan string) (most int) {
	for line := range strings.Lines(plan) {
		if _, n, found := strings.Cut(line, "Rows Removed by "); found {
			_, n, _ = strings.Cut(n, ": ")
			read, err := strconv.Atoi(strings.TrimSpace(n))
			if err == nil {
				most = max(most, read)
			}
		}
	}
	return most
}

func TestWhatLiesAtTheLowWaterMark(t *testing.T) {
	t.Run("H2_is_kept_to_the_microsecond", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		scope, err := s.store.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		s.exec(t, "update in.semel_retention set progress_at = '2026-01-01 12:00:00.000007+00'")
		low := time.Date(2026, 1, 1, 11, 0, 0, 7000, time.UTC)
		s.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at)
			select $1, '\x00'::bytea || n::text::bytea, 1, 0, $2::timestamptz + n * interval '1 microsecond' from generate_series(-1, 1) n`, scope, low)
		if at, err := s.store.Advance(t.Context(), "billing"); err != nil || !at.Equal(low) {
			t.Fatalf("the low-water mark is %v, %v", at, err)
		}
		if r, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 10}); err != nil || r.Markers != 1 {
			t.Errorf("%+v was removed, %v", r, err)
		}
		aged := func(id string, at time.Time) store.Mark {
			return store.Mark{Scope: scope, ID: []byte(id), As: store.Applied, Age: at}
		}
		v := sqlsuite.Asked[*sql.Tx](t, s.store, aged("a", low), aged("b", low.Add(-time.Microsecond)), aged("0", low))
		if v[0].Kind != store.Fresh || v[1].Kind != store.Old || v[2].Kind != store.Seen {
			t.Errorf("the verdicts are %+v", v)
		}
	})
}
