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

// MostSampled is the number at which the counting of rows stops.
const MostSampled = 10_000

// The time limit of a statement of a sample, including the wait for a connection. The server itself stops the statement
// after 50 ms.
const sampleAnswer = 500 * time.Millisecond

// The time limit of a statement in SQLite, which has no server.
const sampleRuns = 50 * time.Millisecond

// Sampled has the number of rows in one state, by consumer.
type Sampled struct {
	// Consumers has the counts by the name of the consumer. Each generation of a consumer has a name of its
	// own.
	Consumers map[string]SampledRows
	// AtLeast is true if more rows exist than were counted. With AtLeast, the figures are lower bounds.
	AtLeast bool
}

// SampledRows has the figures of one consumer. Ages are measured with the store's clock.
type SampledRows struct {
	Rows int64
	// Oldest is the time since the oldest row was received.
	Oldest time.Duration
	// Gap is the longest wait of a row that waits for an earlier version; 0 if no row waits for an earlier version.
	Gap time.Duration
	// Suppressed is the number of rows that a replay without effects wrote; see reason "suppressed".
	Suppressed int64
}

// The limits for counting rows, in the order in which they are tried. Counting up to the first limit may take more than
// 50 ms: waiting rows are spread over a large table, and each row may have to be read from disk, or searched among many
// dead rows.
var sampleFewer = []int{MostSampled, MostSampled / 5, MostSampled / 25}

// SampleRows counts the rows in a state, up to MostSampled. If counting takes more than 50 ms, SampleRows counts fewer
// rows. Later calls also count fewer rows, until counting is fast enough for more rows.
func (s *Store) SampleRows(ctx context.Context, state store.RowState) (out Sampled, err error) {
	err = s.countWithLimit(ctx, state, func(most int) (err error) {
		out, err = s.sampleRows(ctx, state, most)
		return err
	})
	return out, s.db.Answer("sample of rows", err)
}

// sampledTo contains two numbers for a state: the index into sampleFewer that is used, and the number of consecutive
// counts that were fast enough for five times as many rows.
type sampledTo struct{ level, quick int }

// The number of consecutive fast counts before a higher limit is tried. The server has the rows of the lower limit in
// its cache, so the time for these rows says little about the time for more rows.
const quickSamples = 40

// countWithLimit calls the function count with the limit that was fast enough before. If count takes too long,
// countWithLimit continues with lower limits.
func (s *Store) countWithLimit(ctx context.Context, state store.RowState, count func(most int) error) error {
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

// sampleRows counts the rows in a state, up to the given number.
func (s *Store) sampleRows(ctx context.Context, state store.RowState, most int) (Sampled, error) {
	out := Sampled{Consumers: map[string]SampledRows{}}
	var total int64
	// The limit is written into the text of the statement, because the server does not know the value of a parameter
	// when it plans the statement.
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

// The function microseconds converts a number of microseconds to a duration; a negative number becomes 0.
func microseconds(n int64) time.Duration { return max(0, time.Duration(n)*time.Microsecond) }

// SampledReaping describes the progress of removing old data of a consumer.
type SampledReaping struct {
	// Progress is the time since a process last recorded the progress of the consumer.
	Progress time.Duration
	// Lag is the time by which the last complete pass of the reaper (which removes old markers) is behind the
	// retention. Walked is false if no pass was complete yet.
	Lag    time.Duration
	Walked bool
}

// SampleReaping returns the progress of the reaper, which removes old markers, for each consumer. Consumers that keep
// all markers forever are missing in the result.
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

// SampleReplays returns for each consumer the number of replays that have not ended.
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

// SampledTable has the server's estimates for a table: the number of rows, and of dead rows.
type SampledTable struct{ Rows, Dead int64 }

// SampleTables returns the server's estimates for the tables markers and inbox. In SQLite the result is empty.
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

// SampleOutcomes estimates how many markers have each outcome, from the server's statistics of each partition.
// In SQLite, and before the server has collected statistics, the result is empty.
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

// sample runs one query. In PostgreSQL, the query runs in a transaction with a time limit of the server. In SQLite, the
// query runs without a transaction, which would have to wait for writers.
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
