package pgxstore

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// ClaimKey implements contract.KeyStore: it claims a leased key, or says why not.
func (t *tables) ClaimKey(ctx context.Context, c contract.KeyClaim) (contract.KeyAnswer, error) {
	return t.inner.ClaimKey(ctx, c)
}

// ExtendKey implements contract.KeyStore: it lets the lease of a key end later.
func (t *tables) ExtendKey(ctx context.Context, key semel.Key, token contract.Token, lease time.Duration) error {
	return t.inner.ExtendKey(ctx, key, token, lease)
}

// EndKey implements contract.KeyStore: it ends the claim of a key.
func (t *tables) EndKey(ctx context.Context, key semel.Key, token contract.Token, e contract.KeyEnding) error {
	return t.inner.EndKey(ctx, key, token, e)
}

// SaveRequest implements contract.RequestStore: it keeps a note with a claim.
func (t *tables) SaveRequest(ctx context.Context, key semel.Key, token contract.Token, note []byte) error {
	return t.inner.SaveRequest(ctx, key, token, note)
}

// AbandonedKeys implements contract.RequestStore: it looks for keys that nobody works on.
func (t *tables) AbandonedKeys(ctx context.Context, of contract.AbandonedKeysQuery) (contract.AbandonedKeys, error) {
	return t.inner.AbandonedKeys(ctx, of)
}
