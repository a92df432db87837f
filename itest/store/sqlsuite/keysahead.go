package sqlsuite

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// KeysAhead checks leases of keys that were set while the store's clock was ahead. Each lease must end after its own
// length. The function move changes columns of all keys, as if the clock had jumped.
func KeysAhead(t *testing.T, s keystore.Store, move func(by time.Duration, columns ...string)) {
	const lease = time.Minute
	const first, leased, until = "first_at", "leased_at", "locked_until"
	claims := func(t *testing.T, c *keystore.Claim, want keystore.State) keystore.Answer {
		t.Helper()
		a, err := s.ClaimKey(t.Context(), *c)
		if err != nil || a.State != want || a.Left > lease {
			t.Fatalf("%+v, %v; want %v, for %v at most", a, err, want, lease)
		}
		return a
	}
	claim := func(id string) *keystore.Claim {
		return &keystore.Claim{Key: semel.Key{Consumer: "billing", ID: id}, Token: store.NewToken(), Lease: lease, Keep: time.Hour}
	}
	year := calls.Rule{Window: 365 * 24 * time.Hour}
	t.Run("trap_T113_a_key_that_was_claimed_while_the_clock_was_ahead_is_free_after_its_own_lease", func(t *testing.T) {
		holder := claim("ahead")
		claims(t, holder, keystore.Claimed)
		move(24*time.Hour, first, leased, until)
		claims(t, holder, keystore.Claimed) // the answer to the first claim was lost, so the holder claims again
		claims(t, claim("ahead"), keystore.Held)
		move(-lease, leased, until)
		if a := claims(t, claim("ahead"), keystore.Claimed); !year.Forgotten(a.Since) {
			t.Errorf("the first call was made %v ago, want longer than any window", a.Since)
		}
		move(-lease, leased, until)
		if a := claims(t, claim("ahead"), keystore.Claimed); !year.Forgotten(a.Since) {
			t.Errorf("later the first call was made %v ago, want longer than any window", a.Since)
		}
	})
	t.Run("trap_T113_a_key_that_was_claimed_anew_while_the_clock_was_ahead_is_free_after_its_own_lease", func(t *testing.T) {
		claims(t, claim("anew"), keystore.Claimed)
		move(-lease, leased, until)
		claims(t, claim("anew"), keystore.Claimed)
		move(24*time.Hour, leased, until)
		claims(t, claim("anew"), keystore.Held)
		move(-lease, leased, until)
		if a := claims(t, claim("anew"), keystore.Claimed); year.Forgotten(a.Since) {
			t.Errorf("the first call was made %v ago", a.Since)
		}
	})
	t.Run("trap_T113_a_lease_that_was_extended_since_is_left_alone", func(t *testing.T) {
		holder := claim("extended")
		claims(t, holder, keystore.Claimed)
		move(30*time.Second, first, leased, until) // the time moves by less than a lease
		must.OK(t, s.ExtendKey(t.Context(), holder.Key, holder.Token, lease))
		if a := claims(t, claim("extended"), keystore.Held); a.Left < lease/2 {
			t.Errorf("the holder that extended it has it for %v", a.Left)
		}
	})
}
