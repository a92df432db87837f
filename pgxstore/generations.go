package pgxstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// works asks, in the round trip that begins a batch, whether it may work in its generation,
// and holds it there until its end.
func (s *Store) works(w store.Working) []*request {
	if w.In == 0 {
		return nil
	}
	return []*request{{sql: s.sql.Working, args: sqlform.WorkingArguments(w), read: func(rows pgx.Rows) error {
		if rows.Next() {
			return rows.Err()
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return sqlform.NotWorking(w)
	}}}
}

// Generations implements admin.Generations: those of a consumer, by number.
func (t *tables) Generations(ctx context.Context, consumer string) ([]admin.StoredGeneration, error) {
	return t.inner.Generations(ctx, consumer)
}

// BeginGenerations implements admin.Generations.
func (t *tables) BeginGenerations(ctx context.Context, consumer string) error {
	return t.inner.BeginGenerations(ctx, consumer)
}

// OpenGeneration implements admin.Generations.
func (t *tables) OpenGeneration(ctx context.Context, consumer string, a store.Act) (int64, error) {
	return t.inner.OpenGeneration(ctx, consumer, a)
}

// FenceGeneration implements admin.Generations.
func (t *tables) FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error {
	return t.inner.FenceGeneration(ctx, consumer, number, most)
}

// LiftFences implements admin.Generations.
func (t *tables) LiftFences(ctx context.Context, consumer string) error {
	return t.inner.LiftFences(ctx, consumer)
}

// SwitchGeneration implements admin.Generations.
func (t *tables) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	return t.inner.SwitchGeneration(ctx, consumer, from, to, a)
}

// EndGeneration implements admin.Generations.
func (t *tables) EndGeneration(ctx context.Context, consumer string, number int64, a store.Act) error {
	return t.inner.EndGeneration(ctx, consumer, number, a)
}

// ForgetGeneration implements admin.Generations.
func (t *tables) ForgetGeneration(ctx context.Context, consumer string, number int64, most int) (int, error) {
	return t.inner.ForgetGeneration(ctx, consumer, number, most)
}
