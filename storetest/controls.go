package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// controls are the laws of admin.Controls.
func (s suite[Tx]) controls(t *T) {
	t.Run("I0_what_is_wanted_of_a_consumer_is_kept_for_it_alone",
		"A pause and a limit come back as they were ordered last, each with who, why and when, for their consumer alone, and neither changes the other.",
		func(t *T) {
			h := s.opened(t)
			c := h.Store.(admin.Controls)
			h.wantControl(c, "billing", admin.Control{})
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "one")))
			t.must(c.Limit(t.context(), "billing", 7, order("limit", "bo", "two")))
			t.must(c.Limit(t.context(), "billing\x00\xff", 1<<30, order("limit", "bo", "other")))
			h.wantControl(c, "billing", admin.Control{Paused: true, Pause: admin.Order{By: "ana", Why: "one"}, PerSecond: 7, Limit: admin.Order{By: "bo", Why: "two"}})
			h.wantControl(c, "billing\x00\xff", admin.Control{PerSecond: 1 << 30, Limit: admin.Order{By: "bo", Why: "other"}})
			t.must(c.Pause(t.context(), "billing", false, order("resume", "cy", "three")))
			h.wantControl(c, "billing", admin.Control{Pause: admin.Order{By: "cy", Why: "three"}, PerSecond: 7, Limit: admin.Order{By: "bo", Why: "two"}})
			t.must(c.Pause(t.context(), "billing", true, order("pause", "cy", "four")))
			t.must(c.Limit(t.context(), "billing", 0, order("limit", "cy", "five")))
			h.wantControl(c, "billing", admin.Control{Paused: true, Pause: admin.Order{By: "cy", Why: "four"}, Limit: admin.Order{By: "cy", Why: "five"}})
		})
	t.Run("I0_the_consumers_of_a_store_are_told",
		"Consumers with a scope, and those of which something is wanted, are told by name, each once.",
		func(t *T) {
			h := s.opened(t)
			c := h.Store.(admin.Controls)
			h.scopeOf("billing", "other", 0)
			want := []string{"billing"}
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "x")))
			t.must(c.Limit(t.context(), "a", 1, order("limit", "ana", "x")))
			want = append([]string{"a"}, want...)
			got, err := c.Consumers(t.context())
			t.must(err)
			if !slices.Equal(got, want) {
				t.Errorf("the consumers are %q, want %q", got, want)
			}
		})
	t.Run("I0_a_limit_below_nothing_is_refused", "A negative limit is an error, and nothing has changed.", func(t *T) {
		h := s.opened(t)
		c := h.Store.(admin.Controls)
		if err := c.Limit(t.context(), "billing", -1, order("limit", "ana", "x")); err == nil {
			t.Error("it is kept")
		}
		h.wantControl(c, "billing", admin.Control{})
	})
	if s.h.Can.Inbox {
		s.orders(t)
	}
}

// orders are the laws of what is recorded of them.
func (s suite[Tx]) orders(t *T) {
	t.Run("I0_what_is_ordered_is_recorded",
		"Who paused, resumed or limited a consumer is recorded with why and the consumer's name, as an act of no row.",
		func(t *T) {
			h := s.opened(t)
			c := h.Store.(admin.Controls)
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "first")))
			t.must(c.Limit(t.context(), "billing", 7, order("limit", "bo", "second")))
			acts, err := h.inbox().Acts(t.context(), 0, 0)
			t.must(err)
			if len(acts) != 2 {
				t.Fatalf("%d acts: %+v", len(acts), acts)
			}
			for i, want := range []store.Act{{Verb: "pause", Who: "ana", Why: "first"}, {Verb: "limit", Who: "bo", Why: "second"}} {
				a := acts[i]
				if a.Verb != want.Verb || a.Who != want.Who || a.Row != 0 || a.Result != "done" || a.At.IsZero() || !strings.HasPrefix(a.Why, "consumer billing") || !strings.HasSuffix(a.Why, want.Why) {
					t.Errorf("act %d is %+v, want %+v", i, a, want)
				}
			}
			if !strings.Contains(acts[1].Why, "7 messages a second") {
				t.Errorf("the act of a limit does not say which: %q", acts[1].Why)
			}
		})
}

func order(verb, who, why string) store.Act { return store.Act{Verb: verb, Who: who, Why: why} }

// wantControl compares what is wanted of a consumer; a time is there where somebody
// ordered something.
func (h *fixture[Tx]) wantControl(c admin.Controls, consumer string, want admin.Control) {
	h.t.Helper()
	got, err := c.Control(h.t.context(), consumer)
	h.t.must(err)
	for _, o := range []*admin.Order{&got.Pause, &got.Limit} {
		if o.At.IsZero() != (o.By == "") {
			h.t.Errorf("of %q: %+v", consumer, *o)
		}
		o.At = time.Time{}
	}
	if got != want {
		h.t.Errorf("of %q is wanted %+v, want %+v", consumer, got, want)
	}
}
