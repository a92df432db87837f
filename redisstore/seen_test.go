package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// This store has no abandoned keys, so ClaimKey rejects a claim with Seen before it sends a request.
func TestAClaimWithSeenIsRejected(t *testing.T) {
	c := keystore.Claim{Key: semel.Key{Consumer: "billing", ID: "a"}, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour, Seen: 1}
	if _, err := (&Store{}).ClaimKey(t.Context(), c); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("got the error %v, want ErrUnsupported", err)
	}
}
