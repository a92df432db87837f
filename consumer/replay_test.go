package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// replays runs the first consumer over messages that belong to a replay.
func (m *mailing) replays(r semel.Replay, messages ...*semel.Message) semel.Counts {
	m.t.Helper()
	return m.comes(func(c *consumer.Config) { skips(c); c.Replay = &r }, messages...)
}

func TestAReplayFollowsItsPolicyOfEffects(t *testing.T) {
	bubble(t, "E4_without_effects_intents_are_written_and_not_sent", func(t *testing.T) {
		m := newMailing(t)
		m.comes(skips, numbered("m", 2)...)
		if counts := m.replays(semel.Replay{ID: 7}, numbered("m", 5)...); counts.Applied != 3 || counts.Duplicates != 2 {
			t.Errorf("%+v", counts)
		}
		m.sends(2, nil)
		suppressed := 0
		for _, r := range rows(t, m.store) {
			if r.State == store.StateParked && r.Reason == reasonname.Suppressed {
				suppressed++
			}
		}
		if suppressed != 3 {
			t.Errorf("%d intents are suppressed", suppressed)
		}
	})
	bubble(t, "E4_with_effects_they_are_sent", func(t *testing.T) {
		m := newMailing(t)
		m.comes(skips, numbered("m", 2)...)
		m.replays(semel.Replay{ID: 7, Effects: true}, numbered("m", 5)...)
		m.sends(5, nil)
	})
	bubble(t, "E4_law_14_what_it_has_parked_has_no_effects_when_it_is_tried_again", func(t *testing.T) {
		m := newMailing(t)
		var seen atomic.Pointer[semel.Replay]
		fails := true
		handle := func(ctx context.Context, tx *memstore.Tx, message *semel.Message) error {
			if r, is := message.Replay(); is {
				seen.Store(&r)
			}
			if fails {
				return semel.Permanent(errors.New("no such account"))
			}
			return m.handle(ctx, tx, message)
		}
		c := config(newListSource(numbered("m", 1)...))
		c.Replay = &semel.Replay{ID: 7}
		if _, err := consume(t, m.store, handle, c); err != nil {
			t.Fatal(err)
		}
		seen.Store(nil)
		fails = false
		r := rows(t, m.store)[0]
		if err := errors.Join(m.store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "me", Why: "mended"}, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		live := mustNew(t, m.store, handle, config(nil))
		if err := live.Work(t.Context()); err != nil || effect(t, m.store, "m0") != "1" {
			t.Errorf("%v, m0 took effect %q times", err, effect(t, m.store, "m0"))
		}
		if got := seen.Load(); got == nil || *got != (semel.Replay{ID: 7}) {
			t.Errorf("the handler saw %+v", got)
		}
		m.sends(0, nil)
	})
	bubble(t, "law_14_a_message_is_part_of_no_replay_because_a_source_says_so", func(t *testing.T) {
		st := memstore.New()
		forged := message("1", "{}")
		forged.Replayed = &semel.Replay{ID: 9}
		c := config(newListSource(forged))
		if _, err := consume(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if _, is := m.Replay(); is {
				t.Error("it is")
			}
			return add(ctx, tx, m)
		}, c); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("G1_what_a_replay_cannot_be_is_refused", func(t *testing.T) {
		for want, change := range map[string]func(*consumer.Config){
			"Replay.ID: is 0":         func(c *consumer.Config) { c.Replay = &semel.Replay{} },
			"Replay.Generation: is 2": func(c *consumer.Config) { c.Replay = &semel.Replay{ID: 1, Generation: 2} },
			"ReEmitIntents: is set": func(c *consumer.Config) {
				c.Replay, c.ReEmitIntents = &semel.Replay{ID: 1}, true
			},
		} {
			c := config(nil)
			change(&c)
			if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	})
}

// foretells returns the predictions that Preview of a consumer makes for messages.
func foretells(t *testing.T, store *memstore.Store, c consumer.Config, messages ...*semel.Message) (all []string) {
	t.Helper()
	deliveries := make([]source.Delivery, len(messages))
	for i, m := range messages {
		deliveries[i] = source.Delivery{Message: m, Lane: source.Lane{ID: "a"}, Before: source.Unknown}
	}
	found, err := mustNew(t, store, add, c).Preview(t.Context(), deliveries)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		text := f.End.String()
		if f.Was != 0 {
			text += " of " + f.Was.String()
		}
		all = append(all, text)
	}
	return all
}

func TestPreviewPredictsTheEndOfMessages(t *testing.T) {
	want := func(t *testing.T, got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	nameless := &semel.Message{Body: []byte("{}"), Origin: semel.Origin{Partition: -1, Offset: -1}}
	bubble(t, "G4_as_it_then_comes", func(t *testing.T) {
		store := memstore.New()
		if _, err := consume(t, store, add, config(newListSource(message("1", "{}")))); err != nil {
			t.Fatal(err)
		}
		all := []*semel.Message{message("1", "{}"), message("1", `{"n":1}`), message("2", "{}"), nameless}
		want(t, foretells(t, store, config(nil), all...), "duplicate of applied", "conflict", "applied", "parked")
		counts, err := consume(t, store, add, config(newListSource(all...)))
		if err != nil || counts.Applied != 1 || counts.Duplicates != 1 || counts.Conflicts != 1 || counts.Parked != 1 {
			t.Errorf("%+v, %v", counts, err)
		}
		want(t, foretells(t, store, config(nil), all...), "duplicate of applied", "duplicate of parked", "duplicate of applied", "duplicate of parked")
	})
	bubble(t, "G4_as_the_policy_ends_it", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Filter = consumer.Filter{Types: []string{"t"}}
		want(t, foretells(t, store, c, message("1", "{}")), "skipped")
		c.OnFiltered = consumer.OnFilteredPark
		want(t, foretells(t, store, c, message("1", "{}")), "parked")
		c = config(nil)
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true
		want(t, foretells(t, store, c, message("1", "{}"), nameless), "received", "parked")
		c = config(nil)
		c.Strategy, c.NaturalReason = consumer.StrategyNatural, "order: irrelevant"
		want(t, foretells(t, store, c, message("1", "{}")), "not ended")
		c = config(nil)
		c.OnBadIdentity = consumer.ActionHalt
		want(t, foretells(t, store, c, nameless), "not ended")
	})
	bubble(t, "G4_under_the_identity_that_was_before", func(t *testing.T) {
		store := memstore.New()
		before := config(newListSource(message("1", "{}")))
		if _, err := consume(t, store, add, before); err != nil {
			t.Fatal(err)
		}
		both := func(id, former string) *semel.Message {
			m := message(former, "{}")
			m.Headers = append(m.Headers, semel.Header{Name: "new", Value: []byte(id)})
			return m
		}
		c := config(nil)
		c.Identity, c.PreviousIdentity = identity.By("header:new"), &consumer.PreviousIdentity{Identity: before.Identity}
		want(t, foretells(t, store, c, both("a", "1"), both("b", "2")), "duplicate of applied", "applied")
	})
	bubble(t, "G4_a_store_that_does_not_answer_is_an_error", func(t *testing.T) {
		store := memstore.New(memstore.Fail(func(op string) error {
			if op == "foretell" {
				return errors.New("down")
			}
			return nil
		}))
		_, err := mustNew(t, store, add, config(nil)).Preview(t.Context(), []source.Delivery{{Message: message("1", "{}")}})
		if err == nil || !strings.Contains(err.Error(), "down") {
			t.Errorf("%v", err)
		}
	})
}
