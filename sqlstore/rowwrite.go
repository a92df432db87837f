package sqlstore

import (
	"context"
	"slices"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// writeRow writes an inbox row with the commit, or counts one more delivery on
// the one that is there.
func (b *batch) writeRow(ctx context.Context, r *contract.Row) error {
	m := b.marks[r.Mark]
	key := []any{m.Scope, m.Key, sqlform.RowConflict(m.Mark, r.Conflict)}
	if r.Repeat {
		return b.exec(ctx, b.store.sql.Repeat, key)
	}
	values, err := sqlform.RowValues(m.Mark, r)
	if err != nil {
		return err
	}
	n, err := b.execCount(ctx, b.store.sql.Row, slices.Concat(key[:2], []any{m.Long}, key[2:], values))
	if err == nil && n == 0 {
		err = b.rowExists(ctx, r, key, values)
	}
	if err != nil || r.Conflict || r.State.Outcome() == m.As {
		return err
	}
	return b.exec(ctx, b.store.sql.Outcome, []any{int64(r.State.Outcome()), m.Scope, m.Key})
}

// rowExists meets a row of the same key: a copy of a conflict that another
// batch wrote first, or the row of an identity whose marker is gone.
func (b *batch) rowExists(ctx context.Context, r *contract.Row, key, values []any) error {
	if r.Conflict {
		return b.exec(ctx, b.store.sql.Repeat, key)
	}
	return b.exec(ctx, b.store.sql.Again, append(values, key...))
}

func (b *batch) exec(ctx context.Context, statement string, args []any) error {
	_, err := b.tx.ExecContext(ctx, statement, args...)
	return err
}

func (b *batch) execCount(ctx context.Context, statement string, args []any) (int64, error) {
	done, err := b.tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
