package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// forgotten is how many keys whose time is over a claim removes at most, of which it may add
// one: so they are removed as fast as they come.
const forgotten = 3

// ClaimKey implements store.KeyStore.
func (s *Store) ClaimKey(ctx context.Context, c store.KeyClaim) (a store.KeyAnswer, err error) {
	if err := c.Fits(); err != nil {
		return store.KeyAnswer{}, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.sql.ForgetKeys, forgotten); err != nil {
			return err
		}
		for {
			done, err := s.claimKey(ctx, tx, &c, &a)
			if done || err != nil {
				return err
			}
		}
	})
	return a, s.answer("claim a key", err)
}

// claimKey claims a key; false: another was faster in making it, and is to be looked at.
func (s *Store) claimKey(ctx context.Context, tx *sql.Tx, c *store.KeyClaim, a *store.KeyAnswer) (done bool, err error) {
	sum := sqlform.KeySum(c.Key)
	k, row, now, err := s.key(ctx, tx, sum)
	if err != nil {
		return false, err
	}
	claimed := false
	*a, claimed = k.Claim(c, row && k.Over > now, now)
	switch {
	case !claimed:
		return true, nil
	case row:
		return true, s.changeKey(ctx, tx, sum, &k)
	}
	values, err := s.valuesOf(sum, &k)
	if err != nil {
		return false, err
	}
	made, err := tx.ExecContext(ctx, s.sql.NewKey, append([]any{[]byte(c.Key.Consumer), []byte(c.Key.Source), []byte(c.Key.ID), sum}, values...)...)
	if err != nil {
		return false, err
	}
	n, err := made.RowsAffected()
	return n == 1, err
}

// key reads a key and the time, and has it to itself until the transaction ends; false: there
// is none.
func (s *Store) key(ctx context.Context, tx *sql.Tx, sum []byte) (k sqlform.Key, row bool, now int64, err error) {
	var ended, token, first, until, over, started, finished, version, leased sql.NullInt64
	var print []byte
	err = tx.QueryRowContext(ctx, s.sql.Key, sum).Scan(&now, &ended, &token, &first, &until, &over, &started, &finished, &version, &print, &k.Result, &leased)
	if err != nil || !token.Valid {
		return k, false, now, err
	}
	k.Ended, k.Token = store.KeyEvent(ended.Int64), store.Token(token.Int64)
	k.First, k.Until, k.Over, k.Started, k.Finished = first.Int64, until.Int64, over.Int64, int(started.Int64), int(finished.Int64)
	k.Leased = leased.Int64
	k.Fingerprint = s.crypt.ReadPrint(sqlform.PrintOfKey, sum, version.Int64, print)
	k.Result, err = s.crypt.Show(sqlform.OfKey, sum, k.Result)
	return k, err == nil, now, err
}

// valuesOf are the columns that change, in the order of the statements.
func (s *Store) valuesOf(sum []byte, k *sqlform.Key) ([]any, error) {
	result, err := s.crypt.Hide(sqlform.OfKey, sum, k.Result)
	version, print := s.crypt.Print(sqlform.PrintOfKey, sum, k.Fingerprint)
	return []any{int64(k.Ended), int64(k.Token), k.First, k.Until, k.Over, int64(k.Started), int64(k.Finished), version, print, result, k.Leased}, err
}

func (s *Store) changeKey(ctx context.Context, tx *sql.Tx, sum []byte, k *sqlform.Key) error {
	values, err := s.valuesOf(sum, k)
	if err != nil {
		return err
	}
	return s.writeAll(ctx, tx, 1, s.sql.ChangeKey, append([]any{sum}, values...))
}

// Durable implements store.KeyStore.
func (s *Store) Durable() (store.Durability, string) {
	return store.Durable, "the database keeps what it acknowledged"
}

// ExtendKey implements store.KeyStore.
func (s *Store) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	return s.ofKey(ctx, "extend a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error {
		if !k.Extend(t, now, lease) {
			return store.ErrClaimLost
		}
		return s.changeKey(ctx, tx, sum, k)
	})
}

// EndKey implements store.KeyStore.
func (s *Store) EndKey(ctx context.Context, key semel.Key, t store.Token, e store.KeyEnding) error {
	if err := e.Fits(); err != nil {
		return err
	}
	return s.ofKey(ctx, "end a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error {
		written, lost := k.End(t, &e, now)
		switch {
		case lost:
			return store.ErrClaimLost
		case written && e.Event == store.KeyForget:
			return s.writeAll(ctx, tx, 1, s.sql.RemoveKey, []any{sum})
		case written:
			return s.changeKey(ctx, tx, sum, k)
		}
		return nil
	})
}

// ofKey does something with a key that is there.
func (s *Store) ofKey(ctx context.Context, what string, key semel.Key, do func(tx *sql.Tx, sum []byte, k *sqlform.Key, now int64) error) error {
	lost := false
	err := s.write(ctx, func(tx *sql.Tx) error {
		sum := sqlform.KeySum(key)
		k, row, now, err := s.key(ctx, tx, sum)
		if err != nil {
			return err
		}
		if lost = !row || k.Over <= now; lost {
			return nil
		}
		err = do(tx, sum, &k, now)
		if lost = err == store.ErrClaimLost; lost {
			return nil // nothing was written
		}
		return err
	})
	if err == nil && lost {
		return store.ErrClaimLost
	}
	return s.answer(what, err)
}
