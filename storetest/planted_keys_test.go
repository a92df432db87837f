package storetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// keyClock is a clock that stands until time is let pass.
type keyClock struct{ now time.Time }

// brokenKeys is a store of keys with a fault in it.
type brokenKeys struct {
	store.KeyStore
	claim func(*store.KeyClaim)
	heard func(*store.KeyAnswer)
	end   func(*semel.Key, *store.Token, *store.KeyEnding)
	lost  func(error) error
}

func (b *brokenKeys) ClaimKey(ctx context.Context, c store.KeyClaim) (store.KeyAnswer, error) {
	if b.claim != nil {
		b.claim(&c)
	}
	a, err := b.KeyStore.ClaimKey(ctx, c)
	if b.heard != nil {
		b.heard(&a)
	}
	return a, err
}

func (b *brokenKeys) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	err := b.KeyStore.ExtendKey(ctx, key, t, lease)
	if b.lost != nil {
		err = b.lost(err)
	}
	return err
}

func (b *brokenKeys) EndKey(ctx context.Context, key semel.Key, t store.Token, e store.KeyEnding) error {
	if b.end != nil {
		b.end(&key, &t, &e)
	}
	err := b.KeyStore.EndKey(ctx, key, t, e)
	if b.lost != nil {
		err = b.lost(err)
	}
	return err
}

func TestFaultyStoresOfKeysAreFound(t *testing.T) {
	for name, fault := range map[string]*brokenKeys{
		"law_5_a_lost_claim_is_not_told":            {lost: func(error) error { return nil }},
		"law_10_fingerprints_are_forgotten":         {claim: func(c *store.KeyClaim) { c.Fingerprint = semel.Fingerprint{} }},
		"A1_sources_share_their_keys":               {claim: func(c *store.KeyClaim) { c.Key.Source = "" }, end: func(k *semel.Key, _ *store.Token, _ *store.KeyEnding) { k.Source = "" }},
		"B11_results_are_forgotten":                 {end: func(_ *semel.Key, _ *store.Token, e *store.KeyEnding) { e.Result = nil }},
		"B11_a_release_is_a_completion":             {end: func(_ *semel.Key, _ *store.Token, e *store.KeyEnding) { e.Event = store.KeyComplete }},
		"B11_held_is_taken_for_done":                {heard: func(a *store.KeyAnswer) { heldIsDone(a) }},
		"trap_119_an_ended_lease_counts_as_an_end":  {heard: func(a *store.KeyAnswer) { a.Finished = max(a.Started-1, 0) }},
		"trap_120_each_claim_has_a_token_of_itself": {claim: func(c *store.KeyClaim) { c.Token = store.NewToken() }},
		"D3_leases_are_twice_as_long":               {claim: func(c *store.KeyClaim) { c.Lease *= 3; c.Keep *= 3 }},
		"H3_keys_are_kept_for_ever":                 {end: func(_ *semel.Key, _ *store.Token, e *store.KeyEnding) { e.Keep = keepForEver }},
	} {
		t.Run(name, func(t *testing.T) {
			failures := storetest.CheckKeys(t, storetest.KeyHarness{Open: func(testing.TB) storetest.KeyInstance {
				clock := &keyClock{now: time.Unix(1e9, 0)}
				broken := *fault
				broken.KeyStore = memstore.NewKeys(memstore.Clock(func() time.Time { return clock.now }))
				return storetest.KeyInstance{Store: &broken, Pass: func(_ testing.TB, d time.Duration) { clock.now = clock.now.Add(d) }}
			}})
			if len(failures) == 0 {
				t.Error("the suite finds nothing")
			}
		})
	}
}

const keepForEver = 1e6 * time.Hour

func heldIsDone(a *store.KeyAnswer) {
	if a.State == store.KeyHeld {
		a.State = store.KeyCompleted
	}
}
