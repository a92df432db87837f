// Package eraser erases identities, together with their rows, results and leased keys.
package eraser

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/erasure"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements admin.Eraser.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// The default limit of the rows, results or keys that one call examines.
const mostErased = 50

// Erase implements admin.Eraser. A dry run erases the same data, and rolls back the transaction.
func (s *Store) Erase(ctx context.Context, o admin.Erasing) (done admin.Erased, err error) {
	o.Most = cmp.Or(max(o.Most, 0), mostErased)
	if err := erasure.Fits(&o.Filter); err != nil {
		return done, err
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		done = admin.Erased{}
		e := &eraseCall{store: s.db, tx: tx, o: &o}
		if err := withOverwrite(ctx, s.db, tx, func() error { return e.slice(ctx, &done) }); err != nil {
			return err
		}
		if o.DryRun {
			return database.ErrDry
		}
		return nil
	})
	if errors.Is(err, database.ErrDry) {
		err = nil
	}
	if err != nil {
		done = admin.Erased{}
	}
	return done, s.db.Answer("erase", err)
}

// withOverwrite prepares the transaction of an erasure and calls the function do. In PostgreSQL, withOverwrite limits
// the time for which the transaction waits for locks. In SQLite, withOverwrite makes the connection overwrite deleted
// data.
func withOverwrite(ctx context.Context, db *database.DB, tx *sql.Tx, do func() error) error {
	if db.Postgres != nil {
		var settings [3]sql.NullString
		if err := tx.QueryRowContext(ctx, db.Postgres.EraseTurn).Scan(&settings[0], &settings[1], &settings[2]); err != nil {
			return err
		}
		return do()
	}
	was := 0
	if err := tx.QueryRowContext(ctx, db.SQLite.SecureDelete).Scan(&was); err != nil {
		return err
	}
	if was != 0 {
		return do()
	}
	if _, err := tx.ExecContext(ctx, db.SQLite.Overwrite); err != nil {
		return err
	}
	err := do()
	_, undone := tx.ExecContext(context.WithoutCancel(ctx), db.SQLite.NoOverwrite)
	return errors.Join(err, undone)
}

// Scrub implements admin.Eraser. In PostgreSQL Scrub runs VACUUM if whole is true. In SQLite Scrub moves the
// write-ahead log into the file. If whole is true, SQLite first rewrites the file, which fails while another connection
// reads or writes for a long time.
func (s *Store) Scrub(ctx context.Context, whole bool) error {
	if whole {
		if _, err := s.db.Pool.ExecContext(ctx, s.db.SQL.Vacuum); err != nil {
			return s.db.Blameless("vacuum", err)
		}
	}
	if s.db.Postgres != nil {
		return nil
	}
	var busy, log, moved int64
	if err := s.db.Pool.QueryRowContext(ctx, s.db.SQLite.Checkpoint).Scan(&busy, &log, &moved); err != nil {
		return s.db.Blameless("checkpoint", err)
	}
	if busy != 0 {
		return s.db.Blameless("checkpoint", errors.New("the write-ahead log still contains erased data and could not be emptied, because another connection reads or writes; try again, or stop the consumers first"))
	}
	return nil
}

// eraseCall is the state of one call of Erase.
type eraseCall struct {
	store *database.DB
	tx    *sql.Tx
	o     *admin.Erasing
}

// match is an identity that the erasure filter has selected by a row, a result or a leased key.
type match struct {
	key admin.ErasureMark // the row, result or leased key
	id  erasure.Identity
	at  time.Time // time of the marker; zero if it must be looked up
	// hasPlainID is true if the store has the id itself and not only a hash of the id.
	hasPlainID bool
}

// slice erases the next identities that a part (rows, results or keys) selects.
func (e *eraseCall) slice(ctx context.Context, done *admin.Erased) error {
	read := map[admin.ErasurePart]func(context.Context) ([]match, error){
		admin.ErasureRows: e.nextRows, admin.ErasureResults: e.nextResults, admin.ErasureKeys: e.nextKeys,
	}[e.o.After.Part]
	if read == nil {
		done.Next = admin.ErasureMark{Part: admin.ErasureDone}
		return nil
	}
	all, err := read(ctx)
	if err != nil {
		return err
	}
	walk := erasure.Walk{Erasing: e.o, Held: e, Done: done}
	for i := range all {
		f := &all[i]
		if !f.hasPlainID {
			done.Left = append(done.Left, admin.ErasureLeft{Key: f.id.Key, Row: f.rowNumber(), Why: admin.ErasureUnreadable})
			continue
		}
		if f.at.IsZero() && f.key.Part == admin.ErasureResults {
			if f.at, err = e.markedAt(ctx, f.id.Key); err != nil {
				return err
			}
		}
		if err := walk.Found(ctx, f.key, f.id, f.at); err != nil {
			return err
		}
	}
	done.Next = erasure.Next(e.o)
	if len(all) == e.o.Most {
		done.Next = all[len(all)-1].key
	}
	return nil
}

func (f *match) rowNumber() int64 {
	if f.key.Part == admin.ErasureRows {
		return f.key.Number
	}
	return 0
}

// identityOf returns the identity in the given columns. The result is false if the store has only a hash of the id.
func identityOf(consumer, source, id, long []byte) (erasure.Identity, bool) {
	original, ok := sqlform.OriginalID(id, long)
	return erasure.Identity{Key: semel.Key{Consumer: string(consumer), Source: string(source), ID: original}}, ok
}

// markedAt returns the time of a message's marker; zero if the message has no marker.
func (e *eraseCall) markedAt(ctx context.Context, key semel.Key) (at time.Time, err error) {
	own := e.store
	if own.Postgres != nil && own.Days == nil {
		number, kind, err := daily.Dated(ctx, own, e.tx, key.Consumer)
		if own, err = daily.OfDays(own, key.Consumer, kind, number, err); err != nil {
			return at, err
		}
	}
	id, _ := sqlform.ID([]byte(key.ID))
	var outcome, marked, version int64
	var sum []byte
	err = e.tx.QueryRowContext(ctx, own.SQL.Marker, []byte(key.Consumer), []byte(key.Source), id).Scan(&outcome, &marked, &version, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return at, nil
	}
	return time.UnixMilli(marked), err
}

// Generations implements erasure.Held.
func (e *eraseCall) Generations(ctx context.Context, consumer string) (numbers []int64, err error) {
	return database.List(ctx, e.tx, e.store.SQL.Generations, func(rows *sql.Rows) (int64, error) {
		var number int64
		var skipped any
		err := rows.Scan(&number, &skipped, &skipped, &skipped, &skipped, &skipped, &skipped)
		return number, err
	}, []byte(consumer))
}

// Rows implements erasure.Held.
func (e *eraseCall) Rows(ctx context.Context, of erasure.Identity) ([]erasure.Row, error) {
	id, _ := sqlform.ID([]byte(of.Key.ID))
	return e.identityRows(ctx, e.store.SQL.IdentityRows, []byte(of.Key.Consumer), []byte(of.Key.Source), id, sqlform.AsideKey(id))
}

// Caused implements erasure.Held.
func (e *eraseCall) Caused(ctx context.Context, cause []byte) ([]erasure.Row, error) {
	return e.identityRows(ctx, e.store.SQL.CausedRows, cause)
}

func (e *eraseCall) identityRows(ctx context.Context, text string, args ...any) (all []erasure.Row, err error) {
	return database.List(ctx, e.tx, text, func(rows *sql.Rows) (erasure.Row, error) {
		r := erasure.Row{StoredRow: store.StoredRow{Message: &semel.Message{}}}
		var consumer, source, id, long []byte
		var state, reason, kind, envelope string
		var received sql.NullInt64
		if err := rows.Scan(&r.Number, &consumer, &source, &id, &long, &state, &reason, &kind, &envelope, &received); err != nil {
			return r, err
		}
		of, readable := identityOf(consumer, source, id, long)
		r.Key, r.State, r.Reason = of.Key, store.RowState(state), semel.Reason(reason)
		r.Unreadable = !readable
		_, err := e.store.Crypt.Unseal(r.Key, []byte(envelope), r.Message)
		if r.Headless = err != nil; r.Headless {
			*r.Message = semel.Message{Attributes: semel.Attributes{Type: kind}}
		}
		if received.Valid {
			r.ReceivedAt = time.UnixMilli(received.Int64)
		}
		return r, nil
	}, args...)
}

// Lock implements erasure.Held.
func (e *eraseCall) Lock(ctx context.Context, number int64) (bool, error) {
	var state string
	err := e.tx.QueryRowContext(ctx, e.store.SQL.LockRow, number).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// EraseRow implements erasure.Held.
func (e *eraseCall) EraseRow(ctx context.Context, r *erasure.Row) error {
	left, err := sqlform.Sealed(&semel.Message{Topic: r.Message.Topic, Attributes: semel.Attributes{Type: r.Message.Type()}})
	if err != nil {
		return err
	}
	n, err := e.execCount(ctx, e.store.SQL.EraseRow, r.Number, string(left))
	if err == nil && n == 1 {
		_, err = e.execCount(ctx, e.store.SQL.EraseEdits, r.Number)
	} else if err == nil {
		err = fmt.Errorf("row %d was not written: a trigger or a rule prevents it; find it with semel migrate status", r.Number)
	}
	return err
}

// EraseKept implements erasure.Held.
func (e *eraseCall) EraseKept(ctx context.Context, of erasure.Identity) (results, keys int64, err error) {
	id, _ := sqlform.ID([]byte(of.Key.ID))
	results, err = e.execCount(ctx, e.store.SQL.EraseResults, []byte(of.Key.Consumer), []byte(of.Key.Source), id)
	if err == nil {
		keys, err = e.execCount(ctx, e.store.SQL.EraseKey, sqlform.KeySum(of.Key))
	}
	return results, keys, err
}

// Record implements erasure.Held.
func (e *eraseCall) Record(ctx context.Context, number int64, result string) error {
	return e.store.Record(ctx, e.tx, e.o.Act, number, result)
}

func (e *eraseCall) execCount(ctx context.Context, statement string, args ...any) (int64, error) {
	return database.Affected(e.tx.ExecContext(ctx, statement, args...))
}
