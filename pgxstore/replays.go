package pgxstore

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// NewReplay implements admin.Replays.
func (t *tables) NewReplay(ctx context.Context, r admin.Replay, token store.Token, lease time.Duration, a store.Act) (int64, error) {
	return t.inner.NewReplay(ctx, r, token, lease, a)
}

// TakeReplay implements admin.Replays.
func (t *tables) TakeReplay(ctx context.Context, number int64, token store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	return t.inner.TakeReplay(ctx, number, token, lease, a)
}

// SaveReplay implements admin.Replays.
func (t *tables) SaveReplay(ctx context.Context, number int64, token store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	return t.inner.SaveReplay(ctx, number, token, lease, p)
}

// EndReplay implements admin.Replays.
func (t *tables) EndReplay(ctx context.Context, number int64, token store.Token, s admin.ReplayState, p admin.ReplayProgress, a store.Act) error {
	return t.inner.EndReplay(ctx, number, token, s, p, a)
}

// StopReplay implements admin.Replays.
func (t *tables) StopReplay(ctx context.Context, number int64, a store.Act) (admin.Replay, error) {
	return t.inner.StopReplay(ctx, number, a)
}

// Replay implements admin.Replays.
func (t *tables) Replay(ctx context.Context, number int64) (admin.Replay, error) {
	return t.inner.Replay(ctx, number)
}

// ReplaysOf implements admin.Replays.
func (t *tables) ReplaysOf(ctx context.Context, consumer string, limit int) ([]admin.Replay, error) {
	return t.inner.ReplaysOf(ctx, consumer, limit)
}

// Preview implements admin.Previewer.
func (t *tables) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	return t.inner.Preview(ctx, consumer, generation, all)
}
