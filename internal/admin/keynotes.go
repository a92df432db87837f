package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// RequestStore is implemented by a KeyStore that can store a request with a claim, so that another process can finish
// the request. A RequestStore can also find abandoned claims.
type RequestStore interface {
	// SaveRequest stores a note (the request) of 1 to MaxKeyResult bytes with a valid claim, and replaces an earlier
	// note. The store keeps the note, also for later claims, until every claim has a known outcome. SaveRequest returns
	// ErrClaimLost in the same cases as ExtendKey.
	SaveRequest(ctx context.Context, key semel.Key, t store.Token, note []byte) error
	// AbandonedKeys returns a page of the consumer's keys that have a note and no known outcome, and whose lease ended
	// at least AbandonedKeysQuery.Quiet ago.
	AbandonedKeys(ctx context.Context, of AbandonedKeysQuery) (AbandonedKeys, error)
}

// NoteFits returns an error if the size of a note is invalid.
func NoteFits(note []byte) error {
	if n := len(note); n == 0 || n > keystore.MaxResult {
		return fmt.Errorf("a note has 1 to %d bytes; this one has %d", keystore.MaxResult, n)
	}
	return nil
}

// AbandonedKeysQuery is the argument of RequestStore.AbandonedKeys.
type AbandonedKeysQuery struct {
	Consumer string
	// Quiet is the minimum time since the end of the last lease.
	Quiet time.Duration
	// After is AbandonedKeys.Next of the previous page; nil for the first page.
	After []byte
	// Most is the number of keys that are examined, including keys of other consumers; at least 1.
	Most int
}

// AbandonedKeys is a page of abandoned keys.
type AbandonedKeys struct {
	Keys []AbandonedKey
	// Next is the position of the next page; nil after the last page.
	Next []byte
}

// AbandonedKey is a key whose last claim did not end before the lease of the claim expired.
type AbandonedKey struct {
	Key semel.Key
	// Note is nil if the note was encrypted with a key that the store no longer has.
	Note []byte
	// Started is the number of claims.
	Started int
	// Quiet is the time since the end of the last lease.
	Quiet time.Duration
}
