package memstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

func TestLeasedKeys(t *testing.T) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(testing.TB) storetest.KeyInstance {
		now := time.Unix(1e9, 0)
		return storetest.KeyInstance{
			Store: memstore.NewKeys(memstore.Clock(func() time.Time { return now })),
			Pass:  func(_ testing.TB, d time.Duration) { now = now.Add(d) },
		}
	}})
}

func TestKeysInMemoryFailAsOptionFailSays(t *testing.T) {
	for _, op := range []string{"key-before", "key-after"} {
		t.Run(op, func(t *testing.T) {
			var fail error
			k := memstore.NewKeys(memstore.Fail(func(asked string) error {
				if asked == op {
					return fail
				}
				return nil
			}))
			c := keystore.Claim{Key: semel.Key{Consumer: "a", ID: "b"}, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}
			fail = errors.New("it is unplugged")
			if _, err := k.ClaimKey(t.Context(), c); !errors.Is(err, fail) || k.Classify(err) != store.ClassDown {
				t.Fatalf("it says %v", err)
			}
			fail = nil
			c.Token = store.NewToken()
			a, err := k.ClaimKey(t.Context(), c)
			if want := map[string]keystore.State{"key-before": keystore.Claimed, "key-after": keystore.Held}[op]; err != nil || a.State != want {
				t.Errorf("then a claim is %v, %v, want %v", a.State, err, want)
			}
		})
	}
}

func TestLaw11KeysThatAreOverAreForgotten(t *testing.T) {
	now := time.Unix(1e9, 0)
	k := memstore.NewKeys(memstore.Clock(func() time.Time { return now }))
	claim := func(n int) {
		c := keystore.Claim{Key: semel.Key{Consumer: "a", ID: fmt.Sprint(n)}, Token: store.NewToken(), Lease: time.Second, Keep: time.Second}
		if _, err := k.ClaimKey(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 100_000 {
		claim(n)
		now = now.Add(time.Millisecond)
	}
	if n := memstore.CountKeys(k); n > 5000 {
		t.Errorf("%d keys are held of 1,000 that are kept at a time", n)
	}
}

func TestALeasedKeyOfAClockThatWasAhead(t *testing.T) {
	t.Run("trap_T113_is_free_after_its_own_lease", func(t *testing.T) {
		now := time.Unix(1e9, 0)
		k := memstore.NewKeys(memstore.Clock(func() time.Time { return now }))
		claim := func() (store.Token, keystore.Answer) {
			t.Helper()
			c := keystore.Claim{Key: semel.Key{Consumer: "a", ID: "b"}, Token: store.NewToken(), Lease: time.Minute, Keep: 100 * time.Hour}
			a, err := k.ClaimKey(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			return c.Token, a
		}
		holder, _ := claim()
		now = now.Add(-24 * time.Hour)
		if _, a := claim(); a.State != keystore.Held || a.Left != time.Minute {
			t.Fatalf("%+v", a)
		}
		now = now.Add(30 * time.Second)
		if err := k.ExtendKey(t.Context(), semel.Key{Consumer: "a", ID: "b"}, holder, time.Minute); err != nil {
			t.Fatal(err)
		}
		now = now.Add(59 * time.Second)
		if _, a := claim(); a.State != keystore.Held || a.Left != time.Second {
			t.Fatalf("%+v", a)
		}
		now = now.Add(time.Second)
		if _, a := claim(); a.State != keystore.Claimed {
			t.Errorf("%+v", a)
		}
	})
	t.Run("trap_T113_that_was_extended_since_is_held_for_that_long", func(t *testing.T) {
		now := time.Unix(1e9, 0)
		k := memstore.NewKeys(memstore.Clock(func() time.Time { return now }))
		c := keystore.Claim{Key: semel.Key{Consumer: "a", ID: "b"}, Token: store.NewToken(), Lease: time.Minute, Keep: 100 * time.Hour}
		if _, err := k.ClaimKey(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		now = now.Add(-24 * time.Hour)
		if err := k.ExtendKey(t.Context(), c.Key, c.Token, time.Minute); err != nil {
			t.Fatal(err)
		}
		c.Token = store.NewToken()
		if a, err := k.ClaimKey(t.Context(), c); err != nil || a.State != keystore.Held || a.Left != time.Minute {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
