package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

var _ admin.RequestStore = (*Store)(nil)

// SaveRequest implements admin.RequestStore.
func (s *Store) SaveRequest(ctx context.Context, key semel.Key, t store.Token, note []byte) error {
	if err := admin.NoteFits(note); err != nil {
		return err
	}
	return s.ofKey(ctx, "note a key", key, func(tx *sql.Tx, sum []byte, k *sqlform.Key, _ int64) error {
		if !k.Note(t, note) {
			return store.ErrClaimLost
		}
		return s.changeKey(ctx, tx, sum, k)
	})
}

// AbandonedKeys implements admin.RequestStore. Keys stand in the order of their hashes, by the
// primary key of their table: no call reads more rows than it is to look at.
func (s *Store) AbandonedKeys(ctx context.Context, of admin.AbandonedKeysQuery) (left admin.AbandonedKeys, err error) {
	err = eachRow(ctx, s.db, s.sql.AbandonedKeys, func(rows *sql.Rows) error {
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
		if shown, err := s.crypt.Show(sqlform.OfKey, sum, note); err == nil {
			k.Note = shown
		}
		left.Keys = append(left.Keys, k)
		return nil
	}, []any{notNil(of.After), of.Most, []byte(of.Consumer), of.Quiet.Microseconds()})
	return left, s.answer("left keys", err)
}
