package pgxstore

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// ClaimKey implements store.KeyStore: it claims a leased key, or says why not.
func (t *tables) ClaimKey(ctx context.Context, c store.KeyClaim) (store.KeyAnswer, error) {
	return t.inner.ClaimKey(ctx, c)
}

// Durable implements store.KeyStore.
func (t *tables) Durable() (store.Durability, string) { return t.inner.Durable() }

// ExtendKey implements store.KeyStore: it lets the lease of a key end later.
func (t *tables) ExtendKey(ctx context.Context, key semel.Key, token store.Token, lease time.Duration) error {
	return t.inner.ExtendKey(ctx, key, token, lease)
}

// EndKey implements store.KeyStore: it ends the claim of a key.
func (t *tables) EndKey(ctx context.Context, key semel.Key, token store.Token, e store.KeyEnding) error {
	return t.inner.EndKey(ctx, key, token, e)
}

// SaveRequest implements admin.RequestStore: it keeps a note with a claim.
func (t *tables) SaveRequest(ctx context.Context, key semel.Key, token store.Token, note []byte) error {
	return t.inner.SaveRequest(ctx, key, token, note)
}

// AbandonedKeys implements admin.RequestStore: it looks for keys that nobody works on.
func (t *tables) AbandonedKeys(ctx context.Context, of admin.AbandonedKeysQuery) (admin.AbandonedKeys, error) {
	return t.inner.AbandonedKeys(ctx, of)
}
