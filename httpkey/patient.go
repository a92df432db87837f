package httpkey

import (
	"context"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// retryingStore is a store of idempotency keys with a timeout for claims. If the response to a claim is lost,
// retryingStore repeats the claim once with the same token. Without the repetition, the first claim would block the key
// until its lease ends.
type retryingStore struct{ keystore.Store }

// The delay before a claim is repeated.
const patience = 50 * time.Millisecond

// ClaimKey implements keystore.Store.
func (p retryingStore) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	a, err := p.Store.ClaimKey(ctx, c)
	if err != nil && p.Classify(err) != store.ClassPermanent && timing.Wait(ctx, patience) {
		a, err = p.Store.ClaimKey(ctx, c)
	}
	return a, err
}

// retryingRequestStore is like retryingStore, for a store that implements admin.RequestStore.
type retryingRequestStore struct {
	retryingStore
	admin.RequestStore
}
