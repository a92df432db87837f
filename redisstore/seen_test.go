package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// No key is seen left in Redis, so a claim of one that was is refused before the server is asked.
func TestAClaimOfWhatWasSeenIsRefused(t *testing.T) {
	c := store.KeyClaim{Key: semel.Key{Consumer: "billing", ID: "a"}, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour, Seen: 1}
	if _, err := (&Store{}).ClaimKey(t.Context(), c); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("it says %v", err)
	}
}
