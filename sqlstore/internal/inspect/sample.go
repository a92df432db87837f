package inspect

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
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
	// AtLeast says that there are more than were counted, MostSampled or fewer, and that the
	// figures are at least so much.
	AtLeast bool
}

// SampledRows are rows of one consumer. Ages are by the store's clock.
type SampledRows struct {
	Rows int64
	// Oldest is how long ago the oldest was received.
	Oldest time.Duration
	// Gap is the same of those that wait for an earlier version; 0: none does.
	Gap time.Duration
	// Suppressed are those that a replay without effects wrote; see reason "suppressed".
	Suppressed int64
}

// sampleFewer are up to which numbers rows of a state are counted. The database may need more
// than 50 ms for the first: rows that wait lie anywhere in a large table, and each may be read
// from a disk, or be looked for among many that are dead.
var sampleFewer = []int{MostSampled, MostSampled / 5, MostSampled / 25}

// SampleRows counts the rows of a state. It reads MostSampled of them at most, within 50 ms;
// where the database does not come so far, fewer, and then as few the next time, until that
// takes so little time that more can be read.
func (s *Store) SampleRows(ctx context.Context, state store.RowState) (out Sampled, err error) {
	err = s.counting(ctx, state, func(most int) (err error) {
		out, err = s.sampleRows(ctx, state, most)
		return err
	})
	return out, s.db.Answer("sample of rows", err)
}

// sampledTo says by which of sampleFewer a state is counted, and how often in a row that took
// so little time that five times as much could be read.
type sampledTo struct{ level, quick int }

// quickSamples are after how many in a row more is tried. The rows that are read each time are
// in the server's memory, and those behind them may not be: what a few more would take cannot be
// told from that.
const quickSamples = 40

// counting has rows of a state counted up to the number that was counted in time before, or to
// the next lower one where that takes too long.
func (s *Store) counting(ctx context.Context, state store.RowState, count func(most int) error) error {
	s.mu.Lock()
	to := s.sampled[state]
	s.mu.Unlock()
	for {
		began := time.Now()
		err := count(sampleFewer[to.level])
		took := time.Since(began)
		switch late := err != nil && took >= sampleRuns && ctx.Err() == nil; {
		case late && to.level+1 < len(sampleFewer):
			to = sampledTo{level: to.level + 1}
			continue
		case err != nil || took >= sampleRuns/8 || to.level == 0:
			to.quick = 0
		case to.quick < quickSamples:
			to.quick++
		default:
			to = sampledTo{level: to.level - 1}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sampled == nil {
			s.sampled = map[store.RowState]sampledTo{}
		}
		s.sampled[state] = to
		return err
	}
}

// sampleRows counts up to a number.
func (s *Store) sampleRows(ctx context.Context, state store.RowState, most int) (Sampled, error) {
	out := Sampled{Consumers: map[string]SampledRows{}}
	var total int64
	// The number stands in the statement: of one that is given later the server knows nothing
	// when it makes its plan.
	query := strings.Replace(s.db.SQL.SampleRows, "limit "+strconv.Itoa(MostSampled+1), "limit "+strconv.Itoa(most+1), 1)
	err := sample(ctx, s.db, query, func(rows *sql.Rows) error {
		var name []byte
		var n, oldest, suppressed int64
		var gap sql.NullInt64
		err := rows.Scan(&name, &n, &oldest, &gap, &suppressed)
		total += n
		out.Consumers[string(name)] = SampledRows{Rows: min(n, int64(most)), Oldest: microseconds(oldest), Gap: microseconds(gap.Int64), Suppressed: suppressed}
		return err
	}, string(state))
	out.AtLeast = total > int64(most)
	return out, err
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
	err := sample(ctx, s.db, s.db.SQL.SampleReaping, func(rows *sql.Rows) error {
		var name []byte
		var progress int64
		var lag sql.NullInt64
		err := rows.Scan(&name, &progress, &lag)
		all[string(name)] = SampledReaping{Progress: microseconds(progress), Lag: microseconds(lag.Int64), Walked: lag.Valid}
		return err
	})
	return all, s.db.Answer("sample of the reaper", err)
}

// SampleReplays counts the replays of each consumer that have not ended.
func (s *Store) SampleReplays(ctx context.Context) (map[string]int64, error) {
	all := map[string]int64{}
	err := sample(ctx, s.db, s.db.SQL.SampleReplays, func(rows *sql.Rows) error {
		var name []byte
		var n int64
		err := rows.Scan(&name, &n)
		all[string(name)] = n
		return err
	})
	return all, s.db.Answer("sample of replays", err)
}

// SampledTable is what a server estimates of a table.
type SampledTable struct{ Rows, Dead int64 }

// SampleTables are the estimates of the tables markers and inbox; none in SQLite, which has
// none.
func (s *Store) SampleTables(ctx context.Context) (map[string]SampledTable, error) {
	all := map[string]SampledTable{}
	if s.db.Postgres == nil {
		return all, nil
	}
	err := sample(ctx, s.db, s.db.Postgres.SampleTables, func(rows *sql.Rows) error {
		var name string
		var t SampledTable
		err := rows.Scan(&name, &t.Rows, &t.Dead)
		all[name] = t
		return err
	})
	return all, s.db.Answer("sample of tables", err)
}

// SampleOutcomes is how many markers have which outcome, as the server estimates it from a
// sample of each partition; none in SQLite, and before the server has taken one.
func (s *Store) SampleOutcomes(ctx context.Context) (map[store.Outcome]int64, error) {
	all := map[store.Outcome]int64{}
	if s.db.Postgres == nil {
		return all, nil
	}
	err := sample(ctx, s.db, s.db.Postgres.SampleOutcomes, func(rows *sql.Rows) error {
		var outcome store.Outcome
		var n int64
		err := rows.Scan(&outcome, &n)
		all[outcome] = n
		return err
	})
	return all, s.db.Answer("sample of outcomes", err)
}

// sample reads with one statement. In PostgreSQL that stands in a transaction of its own, so
// that the server ends it; in SQLite one would wait for who writes.
func sample(ctx context.Context, s *database.DB, query string, each func(*sql.Rows) error, args ...any) error {
	if s.Postgres == nil {
		ctx, cancel := context.WithTimeout(ctx, sampleRuns)
		defer cancel()
		return database.EachRow(ctx, s.Pool, query, each, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	tx, err := s.Pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, s.Postgres.SampleLimit); err != nil {
		return err
	}
	return database.EachRow(ctx, tx, query, each, args...)
}
