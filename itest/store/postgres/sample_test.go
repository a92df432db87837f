package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestASampleReadsLittle(t *testing.T) {
	db := newDatabase(t)
	s := newFixture(t, db, sqlstore.Options{})
	for _, consumer := range []string{"billing", "audit"} {
		if _, err := s.store.Scope(t.Context(), consumer, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, waitingRows)
	s.exec(t, "update in.semel_inbox set state = 'BLOCKED', reason = 'gap', received_at = now() - interval '1 hour' where \"offset\" = 4")
	s.exec(t, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, 1, 0, now() from in.semel_inbox")
	s.exec(t, "update in.semel_markers set outcome = 3 where ctid in (select ctid from in.semel_markers limit 20000)")
	s.exec(t, "analyze in.semel_inbox")
	s.exec(t, "analyze in.semel_markers")
	statements := sqlstore.Statements(s.store, sqlform.Revision12{})
	t.Run("trap_T81_rows_are_counted_by_their_state_up_to_a_number", func(t *testing.T) {
		for _, state := range []store.RowState{store.StateReceived, store.StateBlocked, store.StateParked} {
			text := plan(t, db, "explain (analyze, buffers) "+statements.SampleRows, string(state))
			if strings.Contains(text, "Seq Scan on semel_inbox") || !strings.Contains(text, "semel_inbox_state") || strings.Contains(text, "Sort Key: semel_inbox.due_at") {
				t.Errorf("the plan of %s:\n%s", state, text)
			}
		}
		rows, err := sqlsuite.Sampled(t.Context(), func(ctx context.Context) (sqlstore.Sampled, error) {
			return s.store.SampleRows(ctx, store.StateReceived)
		})
		// On a busy machine, a sample may reach its time limit and count fewer rows.
		if n := rows.Consumers["billing"].Rows + rows.Consumers["audit"].Rows; err != nil || !rows.AtLeast || n != sqlstore.MostSampled+1 && n != sqlstore.MostSampled/5+1 && n != sqlstore.MostSampled/25+1 {
			t.Errorf("%+v: %v", rows, err)
		}
		rows, err = sqlsuite.Sampled(t.Context(), func(ctx context.Context) (sqlstore.Sampled, error) {
			return s.store.SampleRows(ctx, store.StateBlocked)
		})
		if r := rows.Consumers["billing"]; err != nil || rows.AtLeast || r.Rows != 1 || r.Gap < time.Hour || r.Gap > 2*time.Hour || r.Oldest.Round(time.Second) != r.Gap.Round(time.Second) {
			t.Errorf("%+v: %v", rows, err)
		}
	})
	t.Run("K4_what_is_dated_ahead_of_the_stores_clock_has_no_age_yet", func(t *testing.T) {
		s.exec(t, "update in.semel_inbox set received_at = now() + interval '1 hour' where state = 'BLOCKED'")
		rows, err := sqlsuite.Sampled(t.Context(), func(ctx context.Context) (sqlstore.Sampled, error) {
			return s.store.SampleRows(ctx, store.StateBlocked)
		})
		if r := rows.Consumers["billing"]; err != nil || r.Rows != 1 || r.Oldest != 0 || r.Gap != 0 {
			t.Errorf("%+v: %v", rows, err)
		}
	})
	t.Run("trap_T81_markers_are_estimated", func(t *testing.T) {
		if text := plan(t, db, "explain (analyze, buffers) "+statements.SampleTables); strings.Contains(text, "Scan on semel_markers") {
			t.Errorf("the plan:\n%s", text)
		}
		tables, err := sqlsuite.Sampled(t.Context(), s.store.SampleTables)
		if n := tables["markers"].Rows; err != nil || n < 90_000 || n > 110_000 || tables["inbox"].Rows < 90_000 {
			t.Errorf("%+v: %v", tables, err)
		}
		outcomes, err := sqlsuite.Sampled(t.Context(), s.store.SampleOutcomes)
		if n, parked := outcomes[store.Applied], outcomes[store.Parked]; err != nil || n < 70_000 || n > 90_000 || parked < 15_000 || parked > 25_000 || len(outcomes) != 2 {
			t.Errorf("%+v: %v", outcomes, err)
		}
		if text := plan(t, db, "explain (analyze, buffers) "+statements.SampleOutcomes); strings.Contains(text, "Scan on semel_markers") {
			t.Errorf("the plan:\n%s", text)
		}
	})
	t.Run("K4_how_far_reapers_are_and_which_replays_run", func(t *testing.T) {
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "keeps"}); err != nil {
			t.Fatal(err)
		}
		s.exec(t, "update in.semel_retention set progress_at = now() - interval '2 hours', walked_to = now() - interval '4 hours'")
		reaping, err := sqlsuite.Sampled(t.Context(), s.store.SampleReaping)
		if r := reaping["billing"]; err != nil || len(reaping) != 1 || !r.Walked || r.Lag.Round(time.Minute) != 3*time.Hour || r.Progress.Round(time.Minute) != 2*time.Hour {
			t.Errorf("%+v: %v", reaping, err)
		}
		replays, err := sqlsuite.Sampled(t.Context(), s.store.SampleReplays)
		if err != nil || len(replays) != 0 {
			t.Errorf("%+v: %v", replays, err)
		}
	})
	t.Run("law_11_the_server_ends_one_that_waits", func(t *testing.T) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), s.inSchema("lock table in.semel_inbox in access exclusive mode")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.SampleRows(t.Context(), store.StateParked); err == nil || !strings.Contains(err.Error(), "statement timeout") {
			t.Errorf("it says %v", err)
		}
	})
}

// The server has statistics only for the partitions of a partitioned table, so the number of markers is
// estimated from the partitions.
func TestMarkersThatAreKeptByDayAreEstimated(t *testing.T) {
	t.Run("trap_T81_by_what_the_server_has_analyzed", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{}).useDailyPartitions(t, 0)
		s.exec(t, `insert into in.semel_markers_1 (scope, id, outcome, version, at) select 1, '\x05'::bytea || decode(lpad(to_hex(n), 8, '0'), 'hex'), 1 + n % 2, 0, now() from generate_series(1, 10000) n`)
		s.exec(t, "analyze in.semel_markers_1_aside")
		tables, err := sqlsuite.Sampled(t.Context(), s.store.SampleTables)
		if err != nil || tables["markers"].Rows != 10_000 {
			t.Errorf("%+v: %v", tables, err)
		}
		outcomes, err := sqlsuite.Sampled(t.Context(), s.store.SampleOutcomes)
		if err != nil || outcomes[store.Applied] < 4_900 || outcomes[store.Waiting] < 4_900 || outcomes[store.Applied]+outcomes[store.Waiting] != 10_000 {
			t.Errorf("%+v: %v", outcomes, err)
		}
	})
}
