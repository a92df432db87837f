package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/contract"
)

// MostSampled is up to which number a Sampled counts.
const MostSampled = 10_000

// sampleAnswer is how long a statement of a sample may take on the whole, with what it waits
// for a connection; the server ends what it computes after 50 ms.
const sampleAnswer = 500 * time.Millisecond

// sampleRuns is how long SQLite, which has no server, may compute.
const sampleRuns = 50 * time.Millisecond

// Sampled is what rows of the inbox in one state are, by consumer.
type Sampled struct {
	// Consumers are by name, generations among them.
	Consumers map[string]SampledRows
	// AtLeast says that there are more than MostSampled, and that the figures are at least
	// so much.
	AtLeast bool
}

// SampledRows are rows of one consumer. Ages are by the store's clock.
type SampledRows struct {
	Rows int64
	// Oldest is how long ago the oldest was received.
	Oldest time.Duration
	// Gap is the same of those that wait for an earlier version; 0: none does.
	Gap time.Duration
	// Suppressed are those that a replay without effects wrote; see semel.ReasonSuppressed.
	Suppressed int64
}

// SampleRows counts the rows of a state. It reads MostSampled of them at most, within 50 ms.
func (s *Store) SampleRows(ctx context.Context, state contract.RowState) (Sampled, error) {
	out := Sampled{Consumers: map[string]SampledRows{}}
	var total int64
	err := s.sample(ctx, s.sql.SampleRows, func(rows *sql.Rows) error {
		var name []byte
		var n, oldest, suppressed int64
		var gap sql.NullInt64
		err := rows.Scan(&name, &n, &oldest, &gap, &suppressed)
		total += n
		out.Consumers[string(name)] = SampledRows{Rows: min(n, MostSampled), Oldest: microseconds(oldest), Gap: microseconds(gap.Int64), Suppressed: suppressed}
		return err
	}, string(state))
	out.AtLeast = total > MostSampled
	return out, s.answer("sample of rows", err)
}

// microseconds is a duration that is not negative.
func microseconds(n int64) time.Duration { return max(0, time.Duration(n)*time.Microsecond) }

// SampledReaping is how far the reaper of a consumer is.
type SampledReaping struct {
	// Progress is how long ago one of its processes told how far it is.
	Progress time.Duration
	// Lag is by how much the last whole walk of the reaper is behind the retention; Walked
	// is false where there was none.
	Lag    time.Duration
	Walked bool
}

// SampleReaping tells of each consumer how far its reaper is, but of those that keep all for
// ever, of which nothing is to be removed.
func (s *Store) SampleReaping(ctx context.Context) (map[string]SampledReaping, error) {
	all := map[string]SampledReaping{}
	err := s.sample(ctx, s.sql.SampleReaping, func(rows *sql.Rows) error {
		var name []byte
		var progress int64
		var lag sql.NullInt64
		err := rows.Scan(&name, &progress, &lag)
		all[string(name)] = SampledReaping{Progress: microseconds(progress), Lag: microseconds(lag.Int64), Walked: lag.Valid}
		return err
	})
	return all, s.answer("sample of the reaper", err)
}

// SampleReplays counts the replays of each consumer that have not ended.
func (s *Store) SampleReplays(ctx context.Context) (map[string]int64, error) {
	all := map[string]int64{}
	err := s.sample(ctx, s.sql.SampleReplays, func(rows *sql.Rows) error {
		var name []byte
		var n int64
		err := rows.Scan(&name, &n)
		all[string(name)] = n
		return err
	})
	return all, s.answer("sample of replays", err)
}

// SampledTable is what a server estimates of a table.
type SampledTable struct{ Rows, Dead int64 }

// SampleTables are the estimates of the tables markers and inbox; none in SQLite, which has
// none.
func (s *Store) SampleTables(ctx context.Context) (map[string]SampledTable, error) {
	all := map[string]SampledTable{}
	if s.postgres == nil {
		return all, nil
	}
	err := s.sample(ctx, s.postgres.SampleTables, func(rows *sql.Rows) error {
		var name string
		var t SampledTable
		err := rows.Scan(&name, &t.Rows, &t.Dead)
		all[name] = t
		return err
	})
	return all, s.answer("sample of tables", err)
}

// sample reads with one statement. In PostgreSQL that stands in a transaction of its own, so
// that the server ends it; in SQLite one would wait for who writes.
func (s *Store) sample(ctx context.Context, query string, each func(*sql.Rows) error, args ...any) error {
	if s.postgres == nil {
		ctx, cancel := context.WithTimeout(ctx, sampleRuns)
		defer cancel()
		return eachRow(ctx, s.db, query, each, args)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, s.postgres.SampleLimit); err != nil {
		return err
	}
	return eachRow(ctx, tx, query, each, args)
}
