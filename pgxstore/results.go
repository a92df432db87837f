package pgxstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
)

var (
	_ contract.ResultKeeper[pgx.Tx] = (*Store)(nil)
	_ contract.ResultKeeper[*Queue] = (*QueuedStore)(nil)
	_ contract.ResultReader         = (*Store)(nil)
)

// KeepResult implements contract.ResultKeeper.
func (s *Store) KeepResult(ctx context.Context, tx pgx.Tx, of contract.ResultOf, result []byte) error {
	id, _ := sqlform.ID(of.ID)
	kept, err := s.crypt().Hide(sqlstore.OfResult, of.ID, append([]byte{}, result...))
	if err == nil {
		_, err = tx.Exec(ctx, s.sql.KeepResult, of.Scope, id, kept)
	}
	return err
}

// KeepResult implements contract.ResultKeeper: the statement is sent with the others of its
// batch, and costs no round trip.
func (s *QueuedStore) KeepResult(_ context.Context, q *Queue, of contract.ResultOf, result []byte) error {
	id, _ := sqlform.ID(of.ID)
	kept, err := s.crypt().Hide(sqlstore.OfResult, of.ID, append([]byte{}, result...))
	if err != nil {
		return err
	}
	q.Exec(s.direct.sql.KeepResult, of.Scope, slices.Clone(id), kept)
	return q.Err()
}

// Results implements contract.ResultReader.
func (t *tables) Results(ctx context.Context, of []contract.ResultOf) ([][]byte, error) {
	return t.inner.Results(ctx, of)
}
