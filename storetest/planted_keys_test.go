package storetest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// keyClock is a clock that advances only when Pass is called.
type keyClock struct{ now time.Time }

// brokenKeys is a store of keys with a fault.
type brokenKeys struct {
	keystore.Store
	claim func(*keystore.Claim)
	heard func(*keystore.Answer)
	end   func(*semel.Key, *store.Token, *keystore.Ending)
	lost  func(error) error
}

func (b *brokenKeys) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	if b.claim != nil {
		b.claim(&c)
	}
	a, err := b.Store.ClaimKey(ctx, c)
	if b.heard != nil {
		b.heard(&a)
	}
	return a, err
}

func (b *brokenKeys) ExtendKey(ctx context.Context, key semel.Key, t store.Token, lease time.Duration) error {
	err := b.Store.ExtendKey(ctx, key, t, lease)
	if b.lost != nil {
		err = b.lost(err)
	}
	return err
}

func (b *brokenKeys) EndKey(ctx context.Context, key semel.Key, t store.Token, e keystore.Ending) error {
	if b.end != nil {
		b.end(&key, &t, &e)
	}
	err := b.Store.EndKey(ctx, key, t, e)
	if b.lost != nil {
		err = b.lost(err)
	}
	return err
}

func TestFaultyStoresOfKeysAreFound(t *testing.T) {
	for name, fault := range map[string]*brokenKeys{
		"law_5_a_lost_claim_is_not_reported":       {lost: func(error) error { return nil }},
		"law_10_fingerprints_are_forgotten":        {claim: func(c *keystore.Claim) { c.Fingerprint = semel.Fingerprint{} }},
		"A1_sources_share_their_keys":              {claim: func(c *keystore.Claim) { c.Key.Source = "" }, end: func(k *semel.Key, _ *store.Token, _ *keystore.Ending) { k.Source = "" }},
		"B11_results_are_forgotten":                {end: func(_ *semel.Key, _ *store.Token, e *keystore.Ending) { e.Result = nil }},
		"B11_a_release_is_a_completion":            {end: func(_ *semel.Key, _ *store.Token, e *keystore.Ending) { e.Event = keystore.Complete }},
		"B11_held_counts_as_completed":             {heard: func(a *keystore.Answer) { heldIsDone(a) }},
		"trap_119_an_ended_lease_counts_as_an_end": {heard: func(a *keystore.Answer) { a.Finished = max(a.Started-1, 0) }},
		"trap_120_each_claim_gets_a_new_token":     {claim: func(c *keystore.Claim) { c.Token = store.NewToken() }},
		"D3_leases_are_twice_as_long":              {claim: func(c *keystore.Claim) { c.Lease *= 3; c.Keep *= 3 }},
		"H3_keys_are_never_removed":                {end: func(_ *semel.Key, _ *store.Token, e *keystore.Ending) { e.Keep = keepForEver }},
	} {
		t.Run(name, func(t *testing.T) {
			failures := storetest.CheckKeys(t, storetest.KeyHarness{Open: func(testing.TB) storetest.KeyInstance {
				clock := &keyClock{now: time.Unix(1e9, 0)}
				broken := *fault
				broken.Store = memstore.NewKeys(memstore.Clock(func() time.Time { return clock.now }))
				return storetest.KeyInstance{Store: &broken, Pass: func(_ testing.TB, d time.Duration) { clock.now = clock.now.Add(d) }}
			}})
			if len(failures) == 0 {
				t.Error("the suite finds nothing")
			}
		})
	}
}

const keepForEver = 1e6 * time.Hour

func heldIsDone(a *keystore.Answer) {
	if a.State == keystore.Held {
		a.State = keystore.Completed
	}
}

// brokenNotes is a store of keys with a fault in its notes.
type brokenNotes struct {
	*memstore.Keys
	asked func(*admin.AbandonedKeysQuery)
	heard func(*admin.AbandonedKeys)
	note  func(error) error
	claim func(*keystore.Claim)
}

func (b *brokenNotes) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	if b.claim != nil {
		b.claim(&c)
	}
	return b.Keys.ClaimKey(ctx, c)
}

func (b *brokenNotes) AbandonedKeys(ctx context.Context, of admin.AbandonedKeysQuery) (admin.AbandonedKeys, error) {
	if b.asked != nil {
		b.asked(&of)
	}
	left, err := b.Keys.AbandonedKeys(ctx, of)
	if b.heard != nil {
		b.heard(&left)
	}
	return left, err
}

func (b *brokenNotes) SaveRequest(ctx context.Context, key semel.Key, t store.Token, note []byte) error {
	err := b.Keys.SaveRequest(ctx, key, t, note)
	if b.note != nil {
		err = b.note(err)
	}
	return err
}

func TestFaultyNotesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		fault  brokenNotes
		caught string
	}{
		"held_keys_are_listed":    {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Quiet = -time.Hour }}, "F2_an_abandoned_key_is_found"},
		"the_walk_ends_too_early": {brokenNotes{heard: func(l *admin.AbandonedKeys) { l.Next = nil }}, "F2_the_walk"},
		"the_walk_has_no_limit":   {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Most = 1000 }}, "F2_the_walk"},
		"the_consumer_is_ignored": {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Consumer = "billing" }}, "F2_an_abandoned_key_is_found"},
		"a_note_is_lost": {brokenNotes{heard: func(l *admin.AbandonedKeys) {
			l.Keys = slices.DeleteFunc(l.Keys, func(k admin.AbandonedKey) bool { return k.Started > 1 })
		}}, "F2_an_abandoned_key_is_found"},
		"the_seen_count_is_ignored":    {brokenNotes{claim: func(c *keystore.Claim) { c.Seen = 0 }}, "F2_a_key_is_claimed_only_if"},
		"a_lost_claim_is_not_reported": {brokenNotes{note: func(error) error { return nil }}, "law_5_a_claim_that_was_lost_notes_nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			failures := storetest.CheckKeys(t, storetest.KeyHarness{Open: func(testing.TB) storetest.KeyInstance {
				clock := &keyClock{now: time.Unix(1e9, 0)}
				broken := c.fault
				broken.Keys = memstore.NewKeys(memstore.Clock(func() time.Time { return clock.now }))
				return storetest.KeyInstance{Store: &broken, Pass: func(_ testing.TB, d time.Duration) { clock.now = clock.now.Add(d) }}
			}})
			if !slices.ContainsFunc(failures, func(f storetest.Failure) bool { return strings.Contains(f.Name, c.caught) }) {
				t.Errorf("no case %q failed, only %+v", c.caught, failures)
			}
		})
	}
}

// keepsResults is a store that changes how results are stored.
type keepsResults struct {
	*memstore.Store
	keep func(s *memstore.Store, tx *memstore.Tx, of admin.ResultOf, result []byte) error
}

func (s keepsResults) KeepResult(_ context.Context, tx *memstore.Tx, of admin.ResultOf, result []byte) error {
	return s.keep(s.Store, tx, of, result)
}

// remembersResults is a store that never removes a result or, if forget is true, a store that loses empty results.
type remembersResults struct {
	*memstore.Store
	told   map[string][]byte
	forget bool
}

func (s remembersResults) Results(ctx context.Context, of []admin.ResultOf) ([][]byte, error) {
	all, err := s.Store.Results(ctx, of)
	for i := range all {
		switch {
		case s.forget && len(all[i]) == 0:
			all[i] = nil
		case s.forget:
		case all[i] == nil:
			all[i] = s.told[string(of[i].ID)]
		default:
			maps.Copy(s.told, map[string][]byte{string(of[i].ID): all[i]})
		}
	}
	return all, err
}

func keepingResults(keep func(s *memstore.Store, tx *memstore.Tx, of admin.ResultOf, result []byte) error) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return keepsResults{s, keep} }
}

// oneAtEnd is a batch that stores only the last of the results that its commit should store.
type oneAtEnd struct {
	batch
	of     admin.ResultOf
	result []byte
}

func (b *oneAtEnd) WriteResultAtCommit(of admin.ResultOf, result []byte) {
	b.of, b.result = of, result
}

func (b *oneAtEnd) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.of.ID != nil {
		b.batch.(admin.CommitResultWriter).WriteResultAtCommit(b.of, b.result)
	}
	return b.batch.Commit(ctx, e)
}

var resultFaults = []fault{
	{"a commit keeps only one result", "C12_a_result_may_be_kept_by_the_commit", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &faultyStore{Store: s, batch: func(_ *faultyStore, b batch, _ []store.Mark) batch { return &oneAtEnd{batch: b} }}
	}},
	{"a result is written in a separate transaction", "C12_a_result_commits_with_its_effect", keepingResults(func(s *memstore.Store, _ *memstore.Tx, of admin.ResultOf, result []byte) error {
		b, _, err := s.Begin(context.Background(), store.TxOptions{}, nil)
		if err != nil {
			return err
		}
		defer b.Commit(context.Background(), store.Ending{})
		return s.KeepResult(context.Background(), b.Tx(store.All), of, result)
	})},
	{"results are cut", "C12_a_result_is_any_bytes", keepingResults(func(s *memstore.Store, tx *memstore.Tx, of admin.ResultOf, result []byte) error {
		return s.KeepResult(context.Background(), tx, of, result[:min(len(result), 1000)])
	})},
	{"results ignore the scope", "C12_a_result_is_any_bytes", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return remembersResults{s, map[string][]byte{}, false}
	}},
	{"an empty result is lost", "C12_a_result_is_any_bytes", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return remembersResults{s, nil, true} }},
	{"a result outlives its marker", "H3_a_result_is_removed_with_its_marker", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return remembersResults{s, map[string][]byte{}, false}
	}},
	{"a result under a lost claim is kept", "law_5_a_claim_that_was_lost_keeps_no_result", keepingResults(func(s *memstore.Store, _ *memstore.Tx, of admin.ResultOf, result []byte) error {
		b, _, err := s.Begin(context.Background(), store.TxOptions{}, nil)
		if err != nil {
			return err
		}
		defer b.Commit(context.Background(), store.Ending{})
		return s.KeepResult(context.Background(), b.Tx(store.All), of, result)
	})},
}
