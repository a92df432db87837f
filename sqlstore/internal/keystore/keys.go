// Package keystore stores leased keys in a table.
package keystore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements keystore.Store and admin.RequestStore.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// SaveRequest implements admin.RequestStore.
func (s *Store) SaveRequest(ctx context.Context, key semel.Key, t store.Token, note []byte) error {
	if err := admin.NoteFits(note); err != nil {
		return err
	}
	return ofKey(ctx, s.db, "note a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, _ int64) error {
		if !k.Note(t, note) {
			return store.ErrClaimLost
		}
		return changeKey(ctx, s.db, tx, sum, k)
	})
}

// AbandonedKeys implements admin.RequestStore. AbandonedKeys reads keys in the order of their hashes, which are the
// primary key of the table, so that a call reads only the rows that it examines.
func (s *Store) AbandonedKeys(ctx context.Context, of admin.AbandonedKeysQuery) (left admin.AbandonedKeys, err error) {
	err = database.EachRow(ctx, s.db.Pool, s.db.SQL.AbandonedKeys, func(rows *sql.Rows) error {
		var sum, source, id, note []byte
		var here, last bool
		var quiet int64
		k := admin.AbandonedKey{}
		if err := rows.Scan(&sum, &here, &last, &source, &id, &k.Started, &quiet, &note); err != nil {
			return err
		}
		if last {
			left.Next = sum
		}
		if !here {
			return nil
		}
		k.Key = semel.Key{Consumer: of.Consumer, Source: string(source), ID: string(id)}
		k.Quiet = time.Duration(quiet) * time.Microsecond
		if shown, err := s.db.Crypt.Show(sqlform.OfKey, sum, note); err == nil {
			k.Note = shown
		}
		left.Keys = append(left.Keys, k)
		return nil
	}, database.NotNil(of.After), of.Most, []byte(of.Consumer), of.Quiet.Microseconds())
	return left, s.db.Answer("left keys", err)
}

// The largest number of expired keys that one claim removes. A claim adds at most one key, so the number of expired
// keys cannot grow without limit.
const forgotten = 3

// ClaimKey implements keystore.Store.
func (s *Store) ClaimKey(ctx context.Context, c keystore.Claim) (a keystore.Answer, err error) {
	if err := c.Fits(); err != nil {
		return keystore.Answer{}, err
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.db.SQL.ForgetKeys, forgotten); err != nil {
			return err
		}
		for {
			done, err := claimKey(ctx, s.db, tx, &c, &a)
			if done || err != nil {
				return err
			}
		}
	})
	return a, s.db.Answer("claim a key", err)
}

// claimKey claims a key. The result done is false if another transaction inserted the key at the same time, so that the
// caller must call claimKey again.
func claimKey(ctx context.Context, db *database.DB, tx *sql.Tx, c *keystore.Claim, a *keystore.Answer) (done bool, err error) {
	sum := sqlform.KeySum(c.Key)
	k, row, now, err := readKey(ctx, db, tx, sum)
	if err != nil {
		return false, err
	}
	claimed := false
	*a, claimed = k.Claim(c, row && k.Over > now, now)
	switch {
	case !claimed:
		return true, nil
	case row:
		return true, changeKey(ctx, db, tx, sum, &k)
	}
	values, err := valuesOf(db, sum, &k)
	if err != nil {
		return false, err
	}
	n, err := database.Affected(tx.ExecContext(ctx, db.SQL.NewKey, append([]any{[]byte(c.Key.Consumer), []byte(c.Key.Source), []byte(c.Key.ID), sum}, values...)...))
	return n == 1, err
}

// readKey locks a key, and returns the key and the current time of the database. The result row is false if the key
// does not exist.
func readKey(ctx context.Context, db *database.DB, tx *sql.Tx, sum []byte) (k sqlform.Key, row bool, now int64, err error) {
	var ended, token, first, until, over, started, finished, version, leased sql.NullInt64
	var print []byte
	err = tx.QueryRowContext(ctx, db.SQL.Key, sum).Scan(&now, &ended, &token, &first, &until, &over, &started, &finished, &version, &print, &k.Result, &leased)
	if err != nil || !token.Valid {
		return k, false, now, err
	}
	k.Ended, k.Token = keystore.Event(ended.Int64), store.Token(token.Int64)
	k.First, k.Until, k.Over, k.Started, k.Finished = first.Int64, until.Int64, over.Int64, int(started.Int64), int(finished.Int64)
	k.Leased = leased.Int64
	k.Fingerprint = db.Crypt.ReadPrint(sqlform.PrintOfKey, sum, version.Int64, print)
	k.Result, err = db.Crypt.Show(sqlform.OfKey, sum, k.Result)
	return k, err == nil, now, err
}

// valuesOf returns the values of the columns that can change, in the order of the statements.
func valuesOf(db *database.DB, sum []byte, k *sqlform.Key) ([]any, error) {
	result, err := db.Crypt.Hide(sqlform.OfKey, sum, k.Result)
	version, print := db.Crypt.Print(sqlform.PrintOfKey, sum, k.Fingerprint)
	return []any{int64(k.Ended), int64(k.Token), k.First, k.Until, k.Over, int64(k.Started), int64(k.Finished), version, print, result, k.Leased}, err
}

func changeKey(ctx context.Context, db *database.DB, tx *sql.Tx, sum []byte, k *sqlform.Key) error {
	values, err := valuesOf(db, sum, k)
	if err != nil {
		return err
	}
	return db.WriteAll(ctx, tx, 1, db.SQL.ChangeKey, append([]any{sum}, values...))
}

// Durable implements keystore.Store.
func (s *Store) Durable() (keystore.Durability, string) {
	return keystore.Durable, "the database keeps what it acknowledged"
}

// ExtendKey implements keystore.Store.
func (s *Store) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return ofKey(ctx, s.db, "extend a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error {
		if !k.Extend(t, now, lease) {
			return store.ErrClaimLost
		}
		return changeKey(ctx, s.db, tx, sum, k)
	})
}

// EndKey implements keystore.Store.
func (s *Store) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	if err := e.Fits(); err != nil {
		return err
	}
	return ofKey(ctx, s.db, "end a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error {
		written, lost := k.End(t, &e, now)
		switch {
		case lost:
			return store.ErrClaimLost
		case written && e.Event == keystore.Forget:
			return s.db.WriteAll(ctx, tx, 1, s.db.SQL.RemoveKey, []any{sum})
		case written:
			return changeKey(ctx, s.db, tx, sum, k)
		}
		return nil
	})
}

// ofKey runs the function do with an existing key, in a transaction.
func ofKey(ctx context.Context, db *database.DB, what string, key semel.Key, do func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error) error {
	lost := false
	err := db.Write(ctx, func(tx *sql.Tx) error {
		sum := sqlform.KeySum(key)
		k, row, now, err := readKey(ctx, db, tx, sum)
		if err != nil {
			return err
		}
		if lost = !row || k.Over <= now; lost {
			return nil
		}
		err = do(tx, sum, &k, now)
		if lost = err == store.ErrClaimLost; lost {
			return nil // do has written nothing
		}
		return err
	})
	if err == nil && lost {
		return store.ErrClaimLost
	}
	return db.Answer(what, err)
}
