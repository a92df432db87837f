package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestGaps(t *testing.T) {
	bubble(t, "B9_trap_T55_a_gap_that_does_not_fill_is_parked_and_freed_when_it_does", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 1), versioned("a", 3), versioned("a", 4))
		source.endless = true
		c := guards(source)
		c.Version.Gap, c.IdleExit = time.Minute, 5*time.Minute
		counts := runs(t, st, follows, c)
		if r := row(t, st, "a-3"); r.State != store.StateParked || r.Reason != semel.ReasonGap || counts.Inbox.Parked != 2 {
			t.Errorf("%+v after %+v", r, counts)
		}
		gaps, err := st.Streams(t.Context(), admin.StreamFilter{Gaps: true})
		if err != nil || len(gaps) != 1 || gaps[0].Blocked != 2 || gaps[0].First != 3 || gaps[0].Last != 1 {
			t.Errorf("%+v, %v", gaps, err)
		}
		source = newListSource(versioned("a", 2))
		source.endless = true
		c.Source = source
		runs(t, st, follows, c)
		if streamOf(st, "a") != upTo(4) {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "B9_trap_T55_a_version_too_far_ahead_is_parked_at_once_and_freed_in_its_turn", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 1), versioned("a", 4), versioned("a", 5))
		source.endless = true
		c := guards(source)
		c.Version.GapCap = 2
		seen := &witness{}
		c.Observers = []semel.Observer{seen}
		counts := runs(t, st, follows, c)
		told := seen.eventsOf(semel.EventParked)
		if r := row(t, st, "a-5"); r.State != store.StateParked || r.Reason != semel.ReasonGap || row(t, st, "a-4").State != store.StateBlocked || counts.Inbox.Parked != 1 {
			t.Errorf("%+v after %+v", r, counts)
		}
		if len(told) != 1 || told[0].Reason != semel.ReasonGap || told[0].Stream != "a" || told[0].Version != 5 || told[0].Key.ID != "a-5" {
			t.Errorf("told: %+v", told)
		}
		source = newListSource(versioned("a", 2), versioned("a", 3))
		source.endless = true
		c.Source = source
		runs(t, st, follows, c)
		if streamOf(st, "a") != upTo(5) {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "B9_law_11_what_waits_for_a_version_takes_effect_in_time_without_a_policy_of_versions", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 1), versioned("a", 3))
		source.endless = true
		c := guards(source)
		c.Version.Gap = time.Minute
		runs(t, st, follows, c)
		c.Version, c.IdleExit = nil, 5*time.Minute
		runs(t, st, follows, working2(c))
		if streamOf(st, "a") != "1 3 " {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
	bubble(t, "B9_law_11_what_waited_for_its_key_is_let_go_by_a_policy_of_versions", func(t *testing.T) {
		st := memstore.New()
		keyed := func(number int) *semel.Message {
			m := versioned("a", number)
			m.Key = []byte("a")
			return m
		}
		source := newListSource(keyed(1), keyed(3), keyed(2), keyed(4))
		source.endless = true
		c := guards(source)
		c.Version, c.Lanes = nil, consumer.LanesKey
		c.Retry = consumer.RetryPolicy{MaxAttempts: 1}
		counts := runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return errors.New("down") }, c)
		if counts.Parked != 1 || counts.Waiting != 3 {
			t.Fatalf("%+v", counts)
		}
		c = working2(guards(source))
		runs(t, st, follows, c)
		head := row(t, st, "a-1")
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ann", Why: "it is up"}, head.Seen())...); err != nil {
			t.Fatal(err)
		}
		runs(t, st, follows, working2(c))
		if streamOf(st, "a") != upTo(4) {
			t.Errorf("%q: %+v", streamOf(st, "a"), rows(t, st))
		}
	})
	bubble(t, "B9_a_person_may_skip_what_never_comes", func(t *testing.T) {
		st, source := memstore.New(), newListSource(versioned("a", 1), versioned("a", 4), versioned("a", 5))
		source.endless = true
		c := guards(source)
		runs(t, st, follows, c)
		gaps, _ := st.Streams(t.Context(), admin.StreamFilter{Gaps: true})
		if err := st.SkipTo(t.Context(), gaps[0], 3, store.Act{Verb: "skip", Who: "ann", Why: "lost"}); err != nil {
			t.Fatal(err)
		}
		if err := st.SkipTo(t.Context(), gaps[0], 3, store.Act{Verb: "skip", Who: "bob", Why: "lost"}); !errors.Is(err, semel.ErrChanged) {
			t.Errorf("a second one: %v", err)
		}
		runs(t, st, follows, working2(c))
		if streamOf(st, "a") != "1 4 5 " {
			t.Errorf("%q", streamOf(st, "a"))
		}
	})
}

// working2 returns the configuration c with a source that delivers nothing.
func working2(c consumer.Config) consumer.Config {
	source := newListSource()
	source.endless = true
	c.Source = source
	return c
}
