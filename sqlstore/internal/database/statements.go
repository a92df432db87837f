package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Faults returns the faults that a statement finds, with a remedy for each. The error wraps semel.ErrSchema.
func (s *DB) Faults(ctx context.Context, statement string) error {
	faults, err := List(ctx, s.Pool, statement, func(rows *sql.Rows) (error, error) {
		var what, remedy string
		err := rows.Scan(&what, &remedy)
		return fmt.Errorf("sqlstore: %s: %w: %s", what, semel.ErrSchema, remedy), err
	})
	if err != nil {
		return s.Blameless("check", err)
	}
	return errors.Join(faults...)
}

// withRows returns the statements that read inbox rows.
func (s *DB) withRows() []*string {
	all := []*string{&s.SQL.Rows, &s.SQL.Held}
	if s.Postgres != nil {
		return append(all, &s.Postgres.Claim)
	}
	return append(all, &s.SQLite.Claimable)
}

// Indexes runs a query and returns its column of indexes.
func Indexes(ctx context.Context, from Queryer, query string, args ...any) ([]int, error) {
	return List(ctx, from, query, func(rows *sql.Rows) (i int, err error) {
		err = rows.Scan(&i)
		return i, err
	}, args...)
}

// MomentOf converts milliseconds since 1970 to a time, and 0 to the zero time.
func MomentOf(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds)
}

// Queryer is a transaction or a database.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Changed runs a statement in a transaction of its own, and reports whether the statement changed a row.
func (s *DB) Changed(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		changed, err = ChangedIn(ctx, tx, statement, args...)
		return err
	})
	return changed, err
}

// ChangedIn runs a statement, and reports whether the statement changed a row.
func ChangedIn(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	n, err := Affected(tx.ExecContext(ctx, statement, args...))
	return n > 0, err
}

// MostRows is the default limit of Rows and Acts.
const MostRows = 1000

// Anys converts numbers to arguments of a statement.
func Anys(numbers []int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = n
	}
	return all
}

// fillParts inserts the parts that several statements share.
func (s *DB) fillParts() {
	for _, text := range s.withRows() {
		*text = strings.Replace(*text, "{columns}", s.SQL.RowColumns, 1)
	}
	s.SQL.Extend = strings.ReplaceAll(s.SQL.Extend, "{lease ends}", s.SQL.LeaseEnds)
	for _, text := range []*string{&s.SQL.Retentions, &s.SQL.Advance} {
		*text = strings.ReplaceAll(*text, "{cutoff}", s.SQL.Cutoff)
	}
	s.SQL.Look = strings.Replace(s.SQL.Look, "{owned}", s.SQL.Owned, 1)
	if s.SQLite != nil {
		for _, text := range []*string{&s.SQLite.StartCall, &s.SQLite.EndClaim} {
			*text = strings.Replace(*text, "{owned}", s.SQL.Owned, 1)
		}
		s.SQLite.StartCall = strings.ReplaceAll(s.SQLite.StartCall, "{lease ends}", s.SQL.LeaseEnds)
		for _, text := range []*string{&s.SQLite.Advanced, &s.SQLite.NextDue, &s.SQLite.Part} {
			*text = strings.ReplaceAll(*text, "{cutoff}", s.SQL.Cutoff)
		}
	}
	if p := s.Postgres; p != nil {
		p.StartCalls = strings.ReplaceAll(p.StartCalls, "{lease ends}", s.SQL.LeaseEnds)
		for _, text := range []*string{&p.Begin, &p.BeginNew} {
			*text = strings.Replace(*text, "{writing}", p.Writing, 1)
		}
		p.Due = strings.Replace(p.Due, "{cutoff}", s.SQL.Cutoff, 1)
		p.Place = strings.Replace(p.Place, "{cutoff}", s.SQL.Cutoff, 1)
		for _, text := range []*string{&p.Place, &p.Part} {
			*text = strings.Replace(*text, "{due}", p.Due, 1)
		}
		for _, text := range []*string{&p.ReapRows, &p.Reap} {
			*text = strings.Replace(*text, "{part}", p.Part, 1)
		}
		p.Reaper = strings.NewReplacer("{advance}", p.Advance, "{patience}", p.Patience, "{place}", p.Place, "{reap rows}", p.ReapRows,
			"{reap}", p.Reap, "{walked}", p.Walked, "{reap bodies}", p.ReapBodies).Replace(p.Reaper)
		for _, text := range []*string{&p.StartCalls, &p.BeginClaims, &p.BeginQueuedClaims, &p.ClaimEnds, &p.CloseClaim} {
			*text = strings.Replace(*text, "{owned}", s.SQL.Owned, 1)
		}
		p.ClaimEnds = strings.NewReplacer("{row ends}", p.RowEnds, "{call ends}", p.CallEnds).Replace(p.ClaimEnds)
		p.CloseClaim = strings.Replace(p.CloseClaim, "{row ends}", p.RowEnds, 1)
		for _, text := range []*string{&p.MoveStreams, &p.SkipStream} {
			*text = strings.Replace(*text, "{stream freed}", p.StreamFreed, 1)
		}
		for _, text := range []*string{&p.MoveStreams, &p.SkipStream, &p.AdvanceLines, &p.SweepLines} {
			*text = strings.Replace(*text, "{row freed}", p.RowFreed, 1)
		}
		for _, text := range []*string{&p.EndClaims, &p.CloseClaims} {
			*text = strings.Replace(*text, "{claim ends}", p.ClaimEnds, 1)
		}
	}
}

// WriteAll does the same as WriteIn, for the table inbox.
func (s *DB) WriteAll(ctx context.Context, tx *sql.Tx, rows int, statement string, args []any) error {
	return WriteIn(ctx, tx, sqlform.Inbox, rows, statement, args...)
}

// WriteIn runs a statement that must write the expected number of rows of a table. If the statement writes more or
// fewer rows, a trigger or a rule has prevented the write, and WriteIn returns an error.
func WriteIn(ctx context.Context, tx *sql.Tx, table string, expected int, statement string, args ...any) error {
	n, err := Affected(tx.ExecContext(ctx, statement, args...))
	if err != nil {
		return err
	}
	return sqlform.WrittenIn(table, n, expected)
}

// NotNil returns b, or an empty slice if b is nil. A driver would store nil as NULL.
func NotNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// A time that every database can store. A producer's clock may be wrong by any amount.
var latest = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// MicrosecondsOf converts a time to an argument of a statement; the zero time becomes nil.
func MicrosecondsOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return min(max(t.UnixMicro(), 0), latest)
}

// Milli converts a number of milliseconds to a duration.
func Milli(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Moment converts microseconds since 1970 to a time, and NULL to the zero time.
func Moment(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64)
}

// EachRow calls the function each for every row of a query. If the function each returns an error, EachRow stops and
// returns this error.
func EachRow(ctx context.Context, from Queryer, query string, each func(*sql.Rows) error, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// List calls the function read for each row of a query, and returns the results.
func List[T any](ctx context.Context, from Queryer, query string, read func(*sql.Rows) (T, error), args ...any) (all []T, err error) {
	err = EachRow(ctx, from, query, func(rows *sql.Rows) error {
		one, err := read(rows)
		all = append(all, one)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Affected returns the number of rows that a statement changed.
func Affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// ExecOne runs a statement that must change exactly one row. If the statement changes no row or several rows, or if the
// driver does not report the number, the error wraps the parameter mismatch.
func ExecOne(ctx context.Context, tx *sql.Tx, mismatch error, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(mismatch, err)
	}
	return nil
}

// Exec runs a statement in a transaction of its own.
func (s *DB) Exec(ctx context.Context, statement string, args ...any) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// ActedArg identifies a row in the JSON argument of statements about operators' changes.
type ActedArg struct {
	K int   `json:"k"`
	N int64 `json:"n"`
	R int64 `json:"r"`
}

// ActedNumbers returns the argument of statements about operators' changes. Use ActedNumbers for rows whose revisions
// need no check.
func ActedNumbers(numbers ...int64) string {
	all := make([]ActedArg, len(numbers))
	for k, n := range numbers {
		all[k] = ActedArg{K: k, N: n}
	}
	return sqlform.JSON(all)
}

// NumbersSeen returns the numbers of rows.
func NumbersSeen(rows []store.RowRevision) []int64 {
	all := make([]int64, len(rows))
	for k, r := range rows {
		all[k] = r.Number
	}
	return all
}

// RecordOn writes an audit record of an operator's change for each row number. The number 0 means that the change is
// not about a row.
func (s *DB) RecordOn(ctx context.Context, tx *sql.Tx, a store.Act, result string, numbers ...int64) error {
	return WriteIn(ctx, tx, sqlform.Acts, len(numbers), s.SQL.RecordActs, ActedNumbers(numbers...), sqlform.Plain(a.Verb), sqlform.Plain(a.Who), sqlform.Plain(a.Why), result)
}

// Record writes an audit record of an operator's change to a row. The number 0 means that the change is not about a
// row.
func (s *DB) Record(ctx context.Context, tx *sql.Tx, a store.Act, number int64, result string) error {
	return s.RecordOn(ctx, tx, a, result, number)
}

// Answer wraps errors of the store. An error that concerns the operator of a change is returned unchanged.
func (s *DB) Answer(doing string, err error) error {
	if err == nil || errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return err
	}
	return s.Blameless(doing, err)
}
