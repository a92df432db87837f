// Package reaper stores the retention of consumers, and removes markers, rows and bodies that are older than
// their retention.
package reaper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/operators"
	"github.com/semel-go/semel/store"
)

// Store implements store.Reaper.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// Reap implements store.Reaper. A dry run removes the same data, and rolls back the transaction.
func (s *Store) Reap(ctx context.Context, o store.Reaping) (done store.Reaped, err error) {
	own := s.db
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		done = store.Reaped{}
		if err := lockConsumer(ctx, s.db, tx, o.Consumer); err != nil {
			return err
		}
		var r store.Retention
		r, own, err = policyIn(ctx, s.db, tx, o.Consumer)
		if err == nil {
			err = sqlform.MayReap(r, true)
		}
		if err == nil {
			err = slice(ctx, own, tx, r, o, &done)
		}
		if err == nil && o.DryRun {
			err = database.ErrDry
		}
		return err
	})
	switch {
	case errors.Is(err, database.ErrDry):
		err = nil
	case errors.Is(err, database.ErrElsewhere):
		return store.Reaped{Elsewhere: true}, nil
	}
	if err == nil && own.Days != nil {
		err = daily.ReapDays(ctx, own, o, &done)
	}
	return done, s.db.Answer("reap", err)
}

// slice removes some markers with their rows, and some bodies.
func slice(ctx context.Context, db *database.DB, tx *sql.Tx, r store.Retention, o store.Reaping, done *store.Reaped) error {
	if o.DryRun {
		if _, err := tx.ExecContext(ctx, db.SQL.Advance, []byte(o.Consumer)); err != nil {
			return err
		}
	}
	first := o.After == store.ReapMark{} || o.After.Done
	if first {
		if err := reapBodies(ctx, db, tx, o, done); err != nil {
			return err
		}
	}
	if done.Next.Done = r.Keep == 0 || o.After.Done; done.Next.Done {
		return nil
	}
	// Markers are removed after the bodies, because duplicates of a message whose marker was removed wait for the
	// commit.
	err := reapMarkers(ctx, db, tx, o, done)
	if err == nil && done.Next.Done && !first {
		err = reapBodies(ctx, db, tx, o, done)
	}
	return err
}

// reapBodies removes some bodies. Because it searches every scope (consumer, source and generation), reapBodies is
// called only at the start and at the end of a pass.
func reapBodies(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, done *store.Reaped) (err error) {
	if done.Bodies, err = database.Affected(tx.ExecContext(ctx, db.SQL.ReapBodies, []byte(o.Consumer), o.Most)); err == nil {
		err = operators.ForgetEdits(ctx, db, tx)
	}
	return err
}

// lockConsumer makes this process the only process that removes old data of the consumer, or returns
// database.ErrElsewhere. lockConsumer also sets the time for which the transaction waits for locks.
func lockConsumer(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string) error {
	if db.Postgres != nil {
		var alone bool
		settings := make([]sql.NullString, 8)
		at := []any{&settings[0], &settings[1], &settings[2], &settings[3], &settings[4], &settings[5], &settings[6], &settings[7], &alone}
		if err := tx.QueryRowContext(ctx, db.Postgres.Patience, []byte(consumer)).Scan(at...); err != nil {
			return err
		}
		if !alone {
			return database.ErrElsewhere
		}
	}
	return nil
}

// policyIn returns a consumer's retention, and the database with the consumer's markers. The method uses only one
// statement, because each transaction of the reaper calls it.
func policyIn(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string) (store.Retention, *database.DB, error) {
	r := store.Retention{Consumer: consumer}
	var keep, bodies, horizon int64
	var table sql.NullInt64
	var kind sql.NullString
	err := tx.QueryRowContext(ctx, db.SQL.ReapPolicy, []byte(consumer)).Scan(&keep, &bodies, &horizon, &r.Why, &r.Off, &table, &kind)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, db, sqlform.NothingKept(consumer)
	case err != nil:
		return r, db, err
	}
	r.Keep, r.Bodies, r.Horizon = database.Milli(keep), database.Milli(bodies), database.Milli(horizon)
	if db.Days != nil || !table.Valid {
		return r, db, nil
	}
	own, err := daily.OfDays(db, consumer, kind.String, table.Int64, nil)
	return r, own, err
}

// reapMarkers removes some markers. In PostgreSQL, reapMarkers continues its scan of the table. In SQLite, reapMarkers
// continues in the scope (consumer, source and generation) where the pass stopped, or in the next scope that has
// markers to remove.
func reapMarkers(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, done *store.Reaped) error {
	if db.Postgres != nil {
		return walk(ctx, db, tx, o, done)
	}
	for after := o.After; ; {
		if after.Scope > 0 {
			looked, err := sqliteReap(ctx, db, tx, after, o.Most, done)
			if err != nil || looked > 0 {
				done.Kept = looked - done.Markers
				done.Next.Scope = after.Scope
				return err
			}
		}
		next := store.ReapMark{}
		err := tx.QueryRowContext(ctx, db.SQLite.NextDue, []byte(o.Consumer), after.Scope).Scan(&next.Scope)
		if errors.Is(err, sql.ErrNoRows) {
			done.Next = store.ReapMark{Done: true}
			return nil
		}
		if err != nil {
			return err
		}
		after = next
	}
}

// sqliteReap removes markers after a position, and returns the number of examined markers.
func sqliteReap(ctx context.Context, db *database.DB, tx *sql.Tx, after store.ReapMark, most int, done *store.Reaped) (looked int64, err error) {
	ids, looked, err := readPart(ctx, db, tx, after, most, done)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		n, err := database.Affected(tx.ExecContext(ctx, db.SQLite.RemoveRows, after.Scope, id))
		if err != nil {
			return 0, err
		}
		done.Rows += n
		for _, statement := range []string{db.SQLite.RemoveMarker, db.SQLite.RemoveResult} {
			if _, err := tx.ExecContext(ctx, statement, after.Scope, id); err != nil {
				return 0, err
			}
		}
		done.Markers++
	}
	return looked, nil
}

// readPart reads some markers that are older than their retention. The results are the ids of the markers that
// may be removed, and the number of examined markers.
func readPart(ctx context.Context, db *database.DB, tx *sql.Tx, after store.ReapMark, most int, done *store.Reaped) (ids [][]byte, looked int64, err error) {
	err = database.EachRow(ctx, tx, db.SQLite.Part, func(rows *sql.Rows) error {
		var id []byte
		var goes bool
		if err := rows.Scan(&id, &done.Next.At, &goes); err != nil {
			return err
		}
		done.Next.ID = string(id)
		looked++
		if goes {
			ids = append(ids, id)
		}
		return nil
	}, after.Scope, after.At, []byte(after.ID), most)
	return ids, looked, err
}

// PrintReaper writes SQL for a scheduler in the database: it creates a procedure that removes old data, and calls the
// procedure for each given consumer. For SQLite, which has no scheduler, PrintReaper returns semel.ErrUnsupported.
func (s *Store) PrintReaper(w io.Writer, consumers []string) error {
	if s.db.Postgres == nil {
		return fmt.Errorf("sqlstore: SQLite has no scheduler of its own; run semel retention run instead: %w", semel.ErrUnsupported)
	}
	if _, err := fmt.Fprintf(w, "%s;\n", s.db.Postgres.Reaper); err != nil {
		return err
	}
	for _, consumer := range consumers {
		if _, err := fmt.Fprintf(w, "\ncall %sreap('%s');\n", s.db.Names.Replace("{prefix}"), strings.ReplaceAll(consumer, "'", "''")); err != nil {
			return err
		}
	}
	return nil
}

// A call that may examine n markers reads n/markersPerBlock blocks of a table, but at least fewestBlocks. A block
// contains about sixty to two hundred markers. Most markers are not old enough to be removed, and reading these markers
// costs little.
const (
	markersPerBlock = 32
	fewestBlocks    = 16
)

// walk continues the scan of a pass through the table, and removes old markers in the next blocks. A scan starts where
// the last scan stopped. At the end of the table, the scan continues at the beginning.
func walk(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, done *store.Reaped) error {
	at := o.After
	if at == (store.ReapMark{}) {
		rest := o.Rest.Microseconds()
		if err := tx.QueryRowContext(ctx, db.Postgres.Place, []byte(o.Consumer), rest).Scan(&at.Blocks, &at.Block, &at.At); err != nil {
			return err
		}
		at.Left = at.Blocks
	}
	if at.Left > 0 {
		// The position of the scan is stored before markers are removed, because once a marker is removed, duplicates
		// of its message wait for the commit.
		if err := savePosition(ctx, db, tx, o, &at); err != nil {
			return err
		}
		if err := walkOn(ctx, db, tx, o, &at, done); err != nil {
			return err
		}
	}
	if at.Left > 0 {
		done.Next = at
		return nil
	}
	done.Next = store.ReapMark{Done: true}
	if at.Left < 0 { // no scan was needed
		return nil
	}
	return savePosition(ctx, db, tx, o, &at)
}

// savePosition stores the position of the scan. After a complete scan, savePosition also stores the time up to which
// markers were removed.
func savePosition(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, at *store.ReapMark) error {
	if at.ID != "" { // the stored position covers these blocks already
		return nil
	}
	to := sql.NullInt64{Int64: at.At, Valid: at.Left == 0}
	_, err := tx.ExecContext(ctx, db.Postgres.Walked, []byte(o.Consumer), at.Block, to)
	return err
}

// walkOn removes old markers in the next blocks, and moves the position to the end of these blocks. If the blocks
// contain more markers than one call may examine, the new position is after the last examined marker.
func walkOn(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, at *store.ReapMark, done *store.Reaped) (err error) {
	past := at.Block + min(max(int64(o.Most/markersPerBlock), fewestBlocks), at.Left, at.Blocks-at.Block)
	args := []any{[]byte(o.Consumer), fmt.Sprintf("(%d,0)", at.Block), fmt.Sprintf("(%d,0)", past), o.Most}
	if at.ID != "" {
		args[1] = at.ID
	}
	if done.Rows, err = database.Affected(tx.ExecContext(ctx, db.Postgres.ReapRows, args...)); err != nil {
		return err
	}
	var looked int64
	var last sql.NullString
	if err := tx.QueryRowContext(ctx, db.Postgres.Reap, args...).Scan(&looked, &done.Markers, &last); err != nil {
		return err
	}
	done.Kept = looked - done.Markers
	if at.ID = last.String; at.ID == "" {
		at.Left -= past - at.Block
		if at.Block = past; past >= at.Blocks {
			at.Block = 0
		}
	}
	return nil
}
