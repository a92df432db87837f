package pgxstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

var (
	_ store.Results[pgx.Tx] = (*Store)(nil)
	_ store.Results[*Queue] = (*QueuedStore)(nil)
)

// KeepResult implements store.Results.
func (s *Store) KeepResult(ctx context.Context, tx pgx.Tx, of store.ResultOf, result []byte) error {
	r, err := s.keptResult(of, result)
	if err == nil {
		var tag pgconn.CommandTag
		if tag, err = tx.Exec(ctx, r.sql, r.args...); err == nil && tag.RowsAffected() != 1 {
			err = s.blameless("result", sqlform.WrittenIn(sqlform.Results, tag.RowsAffected(), 1))
		}
	}
	return err
}

func (s *Store) keptResult(of store.ResultOf, result []byte) (*request, error) {
	id, _ := sqlform.ID(of.ID)
	kept, err := s.crypt().Hide(sqlform.OfResult, of.ID, append([]byte{}, result...))
	return &request{sql: s.sql.KeepResult, args: []any{of.Scope, slices.Clone(id), kept}}, err
}

var _ admin.CommitResultWriter = (*batch)(nil)

// WriteResultAtCommit implements admin.CommitResultWriter: the statement is sent with COMMIT.
func (b *batch) WriteResultAtCommit(of store.ResultOf, result []byte) {
	r, err := b.store.keptResult(of, result)
	if err != nil {
		b.unkept = err
		return
	}
	b.results = append(b.results, b.written(sqlform.Results, r.sql, r.args))
}

// KeepResult implements store.Results: the statement is sent with the others of its
// batch, and costs no round trip.
func (s *QueuedStore) KeepResult(_ context.Context, q *Queue, of store.ResultOf, result []byte) error {
	r, err := s.direct.keptResult(of, result)
	if err != nil {
		return err
	}
	q.to.take(q.mark, &request{sql: r.sql, args: r.args, one: true, text: r.sql, kept: sqlform.Results})
	return q.Err()
}

// Results implements store.Results.
func (t *tables) Results(ctx context.Context, of []store.ResultOf) ([][]byte, error) {
	return t.inner.Results(ctx, of)
}
