package sqlstore

import (
	"context"
	"slices"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// writeRow writes an inbox row with the commit, or counts one more delivery on
// the one that is there.
func (b *batch) writeRow(ctx context.Context, r *store.Row) error {
	m := &b.marks[r.Mark]
	if r.Repeat {
		for _, conflict := range b.store.crypt.Repeated(m, r.Conflict) {
			if err := b.exec(ctx, b.store.sql.Repeat, []any{m.Scope, m.Key, conflict}); err != nil {
				return err
			}
		}
		return nil
	}
	key := []any{m.Scope, m.Key, b.store.crypt.RowConflict(m, r.Conflict)}
	values, err := sqlform.RowValues(b.store.crypt, m, r)
	if err != nil {
		return err
	}
	row := slices.Concat(key[:2], []any{m.Long}, key[2:], values)
	if r.Conflict {
		return b.writeOne(ctx, b.store.sql.ConflictRow, row) // another batch may have written it first
	}
	// A row of the same key is left from a marker that is gone.
	err = b.writeOne(ctx, b.store.sql.Row, row)
	if err != nil || r.State.Outcome() == m.As {
		return err
	}
	return b.exec(ctx, b.store.sql.Outcome, []any{int64(r.State.Outcome()), m.Scope, m.Key})
}

func (b *batch) writeOne(ctx context.Context, statement string, args []any) error {
	return b.store.ourOwn("the end of the batch", b.store.writeAll(ctx, b.tx, 1, statement, args))
}

func (b *batch) exec(ctx context.Context, statement string, args []any) error {
	_, err := b.tx.ExecContext(ctx, statement, args...)
	return err
}
