package ordering

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// AllTaken returns an error unless the two parameters are equal. The parameter all is the number of streams that a
// transaction has just inserted, or that existed already. The parameter taken is the number of streams that the
// transaction found afterwards. Drivers for other interfaces also use AllTaken.
func AllTaken(taken, all int) error {
	if taken == all {
		return nil
	}
	return &database.Error{Doing: "streams", Class: store.ClassContended, Err: errors.New("a stream could not be written and does not exist: either it was removed at the same time, or a newer transaction wrote it")}
}

// StreamColumns returns streams as three lists: scopes, names and last versions.
func StreamColumns(all []*streams.Stream) []any {
	flat := make([]any, 0, 3*len(all))
	for _, s := range all {
		flat = append(flat, s.Scope, s.Name, s.Last)
	}
	return database.Arrays(3, flat)
}

// streamPrints returns the fingerprints of the streams' last messages as two lists: versions and sums.
func streamPrints(db *database.DB, all []*streams.Stream) []any {
	flat := make([]any, 0, 2*len(all))
	for _, of := range all {
		version, sum := db.Crypt.Print(sqlform.PrintOfStream, of.Name, of.Print)
		flat = append(flat, version, sum)
	}
	return database.Arrays(2, flat)
}

// BeginStreams inserts streams that have no row yet.
func BeginStreams(ctx context.Context, db *database.DB, tx *sql.Tx, begun []*streams.Stream) error {
	if len(begun) == 0 {
		return nil
	}
	if db.Postgres != nil {
		a := StreamColumns(begun)
		_, err := tx.ExecContext(ctx, db.Postgres.BeginStreams, a[0], a[1], a[2])
		return err
	}
	for _, b := range begun {
		if _, err := tx.ExecContext(ctx, db.SQLite.BeginStream, b.Scope, b.Name, b.Last); err != nil {
			return err
		}
	}
	return nil
}

// MoveStreams advances streams in the transaction that has locked them. MoveStreams also unblocks the rows that waited
// for the new versions; the result freed is true if at least one row was unblocked.
func MoveStreams(ctx context.Context, db *database.DB, tx *sql.Tx, moved []*streams.Stream) (freed bool, err error) {
	if len(moved) == 0 {
		return false, nil
	}
	if db.Postgres != nil {
		n, args := 0, append(StreamColumns(moved), streamPrints(db, moved)...)
		places, numbers := streams.Turns(moved)
		flat := make([]any, 0, 2*len(places))
		for i := range places {
			flat = append(flat, places[i], numbers[i])
		}
		err := tx.QueryRowContext(ctx, db.Postgres.MoveStreams, append(args, database.Arrays(2, flat)...)...).Scan(&n)
		return n > 0, err
	}
	l := db.SQLite
	for _, m := range moved {
		version, sum := db.Crypt.Print(sqlform.PrintOfStream, m.Name, m.Print)
		if _, err := tx.ExecContext(ctx, l.MoveStream, m.Last, version, sum, m.Scope, m.Name); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, l.FreeMarkers, m.Scope, m.Name, m.Last); err != nil {
			return false, err
		}
		changed, err := database.ChangedIn(ctx, tx, l.FreeRows, m.Scope, m.Name, m.Last)
		if err != nil {
			return false, err
		}
		freed = freed || changed
	}
	return freed, nil
}

// SkipStream advances a stream to a version, past missing versions.
func SkipStream(ctx context.Context, db *database.DB, tx *sql.Tx, to *streams.Stream) error {
	if db.Postgres == nil {
		_, err := MoveStreams(ctx, db, tx, []*streams.Stream{to})
		return err
	}
	_, err := tx.ExecContext(ctx, db.Postgres.SkipStream, to.Scope, to.Name, to.Last)
	return err
}

// Streams implements admin.Streams.
func (s *Store) Streams(ctx context.Context, f admin.StreamFilter) ([]admin.StoredStream, error) {
	if f.Limit <= 0 {
		f.Limit = database.MostRows
	}
	all, err := database.List(ctx, s.db.Pool, s.db.SQL.Streams, func(rows *sql.Rows) (admin.StoredStream, error) {
		var found admin.StoredStream
		var consumer, source, name []byte
		var oldest sql.NullInt64
		err := rows.Scan(&consumer, &source, &found.Generation, &name, &found.Last, &found.Blocked, &found.First, &found.Row, &oldest)
		found.Consumer, found.Source, found.Name = string(consumer), string(source), string(name)
		if oldest.Valid {
			found.Oldest = time.UnixMilli(oldest.Int64)
		}
		return found, err
	}, BytesOrNull(f.Consumer), BytesOrNull(f.Stream), f.Gaps, f.Limit)
	return all, s.db.Answer("streams", err)
}

// BytesOrNull converts the value of a filter. An empty value becomes nil, which selects all rows.
func BytesOrNull(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
