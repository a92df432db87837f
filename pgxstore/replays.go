package pgxstore

import (
	"context"
	"time"

	"github.com/semel-go/semel/contract"
)

// NewReplay implements contract.Replays.
func (t *tables) NewReplay(ctx context.Context, r contract.Replay, token contract.Token, lease time.Duration, a contract.Act) (int64, error) {
	return t.inner.NewReplay(ctx, r, token, lease, a)
}

// TakeReplay implements contract.Replays.
func (t *tables) TakeReplay(ctx context.Context, number int64, token contract.Token, lease time.Duration, a contract.Act) (contract.Replay, error) {
	return t.inner.TakeReplay(ctx, number, token, lease, a)
}

// SaveReplay implements contract.Replays.
func (t *tables) SaveReplay(ctx context.Context, number int64, token contract.Token, lease time.Duration, p contract.ReplayProgress) (contract.ReplayState, error) {
	return t.inner.SaveReplay(ctx, number, token, lease, p)
}

// EndReplay implements contract.Replays.
func (t *tables) EndReplay(ctx context.Context, number int64, token contract.Token, s contract.ReplayState, p contract.ReplayProgress, a contract.Act) error {
	return t.inner.EndReplay(ctx, number, token, s, p, a)
}

// StopReplay implements contract.Replays.
func (t *tables) StopReplay(ctx context.Context, number int64, a contract.Act) (contract.Replay, error) {
	return t.inner.StopReplay(ctx, number, a)
}

// Replay implements contract.Replays.
func (t *tables) Replay(ctx context.Context, number int64) (contract.Replay, error) {
	return t.inner.Replay(ctx, number)
}

// ReplaysOf implements contract.Replays.
func (t *tables) ReplaysOf(ctx context.Context, consumer string, limit int) ([]contract.Replay, error) {
	return t.inner.ReplaysOf(ctx, consumer, limit)
}

// Preview implements contract.Previewer.
func (t *tables) Preview(ctx context.Context, consumer string, generation int64, all []contract.PreviewQuery) ([]contract.Verdict, error) {
	return t.inner.Preview(ctx, consumer, generation, all)
}
