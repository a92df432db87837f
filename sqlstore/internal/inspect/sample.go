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

// MostSampled is the number up to which a Sampled counts.
const MostSampled = 10_000

// sampleAnswer limits a statement of a sample, including the wait for a connection. The server
// itself stops after 50 ms.
const sampleAnswer = 500 * time.Millisecond

// sampleRuns limits the run time in SQLite, which has no server.
const sampleRuns = 50 * time.Millisecond

// Sampled contains the counts of rows in one state, by consumer.
type Sampled struct {
	// Consumers are the counts by consumer name; each generation has its own name.
	Consumers map[string]SampledRows
	// AtLeast: there are more rows than were counted, so the figures are lower bounds.
	AtLeast bool
}

// SampledRows are the counts of one consumer. Ages are by the store's clock.
type SampledRows struct {
	Rows int64
	// Oldest is the time since the oldest row was received.
	Oldest time.Duration
	// Gap is the same for rows that wait for an earlier version; 0 if there are none.
	Gap time.Duration
	// Suppressed counts rows that a replay without effects wrote; see reason "suppressed".
	Suppressed int64
}

// sampleFewer are the limits up to which rows of a state are counted. The first may need more
// than 50 ms: waiting rows are spread over a large table, and each may have to be read from
// disk, or searched among many dead rows.
var sampleFewer = []int{MostSampled, MostSampled / 5, MostSampled / 25}

// SampleRows counts the rows of a state, at most MostSampled. If the database needs more than
// 50 ms, it counts fewer, now and the next times, until counting is fast enough for more.
func (s *Store) SampleRows(ctx context.Context, state store.RowState) (out Sampled, err error) {
	err = s.counting(ctx, state, func(most int) (err error) {
		out, err = s.sampleRows(ctx, state, most)
		return err
	})
	return out, s.db.Answer("sample of rows", err)
}

// sampledTo is the index into sampleFewer with which a state is counted, and how many counts
// in a row were fast enough that five times as much could be counted.
type sampledTo struct{ level, quick int }

// quickSamples is how many fast counts in a row are required before a higher limit is tried.
// The rows that are counted each time are cached by the server, so their time says little
// about more rows.
const quickSamples = 40

// counting calls count with the limit that was fast enough before, and with lower limits if
// that takes too long.
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

// sampleRows counts the rows of a state up to most.
func (s *Store) sampleRows(ctx context.Context, state store.RowState, most int) (Sampled, error) {
	out := Sampled{Consumers: map[string]SampledRows{}}
	var total int64
	// The limit is part of the text, because the server does not know a parameter's value when
	// it plans the statement.
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

// microseconds converts to a duration that is not negative.
func microseconds(n int64) time.Duration { return max(0, time.Duration(n)*time.Microsecond) }

// SampledReaping is the progress of the reaper for a consumer.
type SampledReaping struct {
	// Progress is the time since a process last recorded its progress.
	Progress time.Duration
	// Lag is how far the last complete pass of the reaper is behind the retention. Walked is
	// false if there was no complete pass.
	Lag    time.Duration
	Walked bool
}

// SampleReaping returns the progress of the reaper for each consumer, except those that keep
// everything forever.
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

// SampledTable contains the server's estimates for a table.
type SampledTable struct{ Rows, Dead int64 }

// SampleTables returns the server's estimates for the tables markers and inbox; none in
// SQLite.
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

// SampleOutcomes returns how many markers have each outcome, by the server's statistics of each
// partition. SampleOutcomes returns nothing in SQLite, and before the server has collected
// statistics.
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

// sample reads with one statement. In PostgreSQL it uses a transaction with a server-side
// limit. In SQLite a transaction would wait for writers.
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
