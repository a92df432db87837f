package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// RequestStore is an optional ability of a KeyStore: to keep beside a claim what somebody else
// needs to finish what it was for, and to find claims that nobody works on any more.
type RequestStore interface {
	// SaveRequest keeps a note of 1 to MaxKeyResult bytes with a claim that stands, in the place
	// of the one before. It stays, with the claims after it, while of one of them nobody
	// knows what it did, and goes with every other ending. ErrClaimLost as of ExtendKey.
	SaveRequest(ctx context.Context, key semel.Key, t Token, note []byte) error
	// AbandonedKeys looks at some keys from a place on, and returns those of a consumer that have
	// a note, and no known end, and whose lease has been over for AbandonedKeysQuery.Quiet.
	AbandonedKeys(ctx context.Context, of AbandonedKeysQuery) (AbandonedKeys, error)
}

// NoteFits is nil, or what is wrong with a note.
func NoteFits(note []byte) error {
	if n := len(note); n == 0 || n > MaxKeyResult {
		return fmt.Errorf("a note has 1 to %d bytes; this one has %d", MaxKeyResult, n)
	}
	return nil
}

// AbandonedKeysQuery says which keys are looked for.
type AbandonedKeysQuery struct {
	Consumer string
	// Quiet is for how long nobody has worked on them.
	Quiet time.Duration
	// After is AbandonedKeys.Next of the call before; nil: the first place.
	After []byte
	// Most is how many keys are looked at, of any consumer; at least 1.
	Most int
}

// AbandonedKeys are keys that nobody works on.
type AbandonedKeys struct {
	Keys []AbandonedKey
	// Next is where the next call goes on; nil: this was the last place.
	Next []byte
}

// AbandonedKey is a key that nobody works on.
type AbandonedKey struct {
	Key semel.Key
	// Note is nil if the store can read it no more, since it was encrypted under a key that is
	// gone.
	Note []byte
	// Started is how many claims there were.
	Started int
	// Quiet is how long ago the lease of the last one ended, or was to end.
	Quiet time.Duration
}
