package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestASampleOfAFile(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	s := storeOn(t, db)
	if err := s.Retain(t.Context(), store.Retention{Consumer: "keeps"}); err != nil {
		t.Fatal(err)
	}
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
values (1, ?, x'0061', x'', 0, 0, 'BLOCKED', 'gap', '', 0, 0, '', '', '', '{}', x'', cast(unixepoch('subsec') * 1000 as integer) - 60000, 0, 0, 0, 0, '', '')`, scope); err != nil {
		t.Fatal(err)
	}
	t.Run("trap_T81_rows_are_counted_while_somebody_writes", func(t *testing.T) {
		tx, err := db.Begin() // this transaction locks the file
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("update semel_inbox set reason = 'other'"); err != nil {
			t.Fatal(err)
		}
		rows, err := sqlsuite.Sampled(t.Context(), func(ctx context.Context) (sqlstore.Sampled, error) { return s.SampleRows(ctx, store.StateBlocked) })
		if r := rows.Consumers["billing"]; err != nil || rows.AtLeast || r.Rows != 1 || r.Gap.Round(time.Minute) != time.Minute || r.Oldest < time.Minute {
			t.Errorf("%+v: %v", rows, err)
		}
		reaping, err := sqlsuite.Sampled(t.Context(), s.SampleReaping)
		if r, there := reaping["billing"]; err != nil || len(reaping) != 1 || !there || r.Walked || r.Progress > time.Minute {
			t.Errorf("%+v: %v", reaping, err)
		}
		if replays, err := sqlsuite.Sampled(t.Context(), s.SampleReplays); err != nil || len(replays) != 0 {
			t.Errorf("%+v: %v", replays, err)
		}
		if outcomes, err := sqlsuite.Sampled(t.Context(), s.SampleOutcomes); err != nil || len(outcomes) != 0 {
			t.Errorf("%+v: %v", outcomes, err)
		}
		if tables, err := sqlsuite.Sampled(t.Context(), s.SampleTables); err != nil || len(tables) != 0 {
			t.Errorf("%+v: %v", tables, err)
		}
	})
}
