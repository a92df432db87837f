package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// mistimed runs the cases of times that are not what they seem, and of scopes that come
// after something was removed.
func (s suite[Tx]) mistimed(t *T) {
	old, ahead := store.Verdict{Kind: store.Old}, store.Verdict{Kind: store.Old, Ahead: true}
	t.Run("H4_what_is_dated_ahead_is_set_aside_once_something_was_removed", "A message from the future would be fresh again after its marker is gone, so it does not run by itself.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		next := time.Now().Add(365 * 24 * time.Hour)
		h.wantKinds(h.deliver(h.aged("a", next)), fresh) // nothing was removed yet
		h.reaped(1)
		want := ahead
		if s.h.Can.OneConsumer {
			want = already(store.Applied)
		}
		h.wantKinds(h.asks(h.aged("a", next)), want)
		h.wantKinds(h.asks(h.aged("b", next)), ahead)
		h.wantKinds(h.asks(h.aged("c", time.Now().Add(store.MaxClockSkew/2))), fresh)
	})
	t.Run("H2_a_cutoff_that_goes_back_keeps_what_is_younger", "Where the clock was set back, or the retention made longer, a marker that is younger than that stays, whatever was removed before.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		h.deliver(h.print("a", 1))
		h.park("b")
		h.reaped(1)
		h.deliver(h.print("c", 1))
		moment(h.t.context())
		h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
		if _, err := h.reaper().Advance(h.t.context(), "billing"); err != nil {
			t.Fatal(err)
		}
		h.retain(store.Retention{Keep: time.Hour})
		for after := (store.ReapMark{}); !after.Done; {
			r, err := h.reaper().Reap(h.t.context(), store.Reaping{Consumer: "billing", Most: 10, After: after})
			h.t.must(err)
			if r.Markers != 0 || r.Rows != 0 {
				t.Fatalf("%+v was removed of what is to be kept for an hour", r)
			}
			after = r.Next
		}
		h.wantKinds(h.asks(h.aged("c", longAgo)), already(store.Applied))
	})
	if s.h.Can.OneConsumer {
		return
	}
	t.Run("A7_H4_a_scope_that_is_new_begins_where_the_others_are", "A new generation or source of a consumer knows no more than what is kept of the former: what is older is old.", func(t *T) {
		h := s.opened(t)
		h.retain(store.Retention{Keep: soon})
		h.deliver(h.print("a", 1))
		h.reaped(1)
		for _, of := range []struct {
			consumer, source string
			generation       int64
			want             store.Verdict
		}{{"billing", "shop", 1, old}, {"billing", "shop2", 0, old}, {"audit", "shop", 0, fresh}} {
			n, err := h.Store.Scope(h.t.context(), of.consumer, of.source, of.generation)
			if errors.Is(err, semel.ErrUnsupported) {
				continue
			}
			h.t.must(err)
			m := h.aged("a", longAgo)
			m.Scope = n
			h.wantKinds(h.asks(m), of.want)
		}
		if at, err := h.reaper().Removed(h.t.context(), "billing"); err != nil || at.IsZero() || at.After(time.Now()) {
			t.Errorf("up to %v was removed, %v", at, err)
		}
		if at, err := h.reaper().Removed(h.t.context(), "audit"); err != nil || !at.IsZero() {
			t.Errorf("of another, %v, %v", at, err)
		}
	})
}
