package storetest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// brokenNotes are keys with a fault in what they say of notes.
type brokenNotes struct {
	*memstore.Keys
	asked func(*admin.AbandonedKeysQuery)
	heard func(*admin.AbandonedKeys)
	note  func(error) error
	claim func(*store.KeyClaim)
}

func (b *brokenNotes) ClaimKey(ctx context.Context, c store.KeyClaim) (store.KeyAnswer, error) {
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
		"what_is_under_way_is_left": {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Quiet = -time.Hour }}, "F2_what_is_left"},
		"the_walk_ends_too_early":   {brokenNotes{heard: func(l *admin.AbandonedKeys) { l.Next = nil }}, "F2_the_walk"},
		"the_walk_has_no_bound":     {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Most = 1000 }}, "F2_the_walk"},
		"the_consumer_is_not_heard": {brokenNotes{asked: func(of *admin.AbandonedKeysQuery) { of.Consumer = "billing" }}, "F2_what_is_left"},
		"a_note_is_lost": {brokenNotes{heard: func(l *admin.AbandonedKeys) {
			l.Keys = slices.DeleteFunc(l.Keys, func(k admin.AbandonedKey) bool { return k.Started > 1 })
		}}, "F2_what_is_left"},
		"what_was_seen_is_not_heard": {brokenNotes{claim: func(c *store.KeyClaim) { c.Seen = 0 }}, "F2_what_was_seen"},
		"a_lost_claim_is_not_told":   {brokenNotes{note: func(error) error { return nil }}, "law_5_a_claim_that_was_lost_notes_nothing"},
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
