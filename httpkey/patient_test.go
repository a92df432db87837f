package httpkey_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
)

// silentStore is a store that does not respond to claims.
type silentStore struct{ keystore.Store }

func (silentStore) ClaimKey(ctx context.Context, _ keystore.Claim) (keystore.Answer, error) {
	<-ctx.Done()
	return keystore.Answer{}, ctx.Err()
}

func TestLaw11AStoreThatIsSilentIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{status: 201}
		s := newLeasedFixture(t, silentStore{memstore.NewKeys()}, c.serve, nil)
		began := time.Now()
		wantProblem(t, s.post(`"k"`, "tea"), 503, "store-unavailable")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		c.want(t, 0)
	})
}

func TestF1AClaimWithALostResponseDoesNotBlockTheKey(t *testing.T) {
	lost := false
	keys := memstore.NewKeys(memstore.Fail(func(op string) error {
		if op != "key-after" || lost {
			return nil
		}
		lost = true
		return errAway
	}))
	c := &calls{status: 201}
	if w := newLeasedFixture(t, keys, c.serve, nil).post(`"k"`, "tea"); w.Code != 201 || c.last.Number != 1 || c.last.Unknown || !lost {
		t.Errorf("%d, the handler is told %+v", w.Code, c.last)
	}
}
