package memstore

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// newClaimedStore returns a store with a claimed message, and the mark that belongs to the claim.
func newClaimedStore(t *testing.T, lease time.Duration) (*Store, store.Mark) {
	t.Helper()
	s := New()
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	mark := store.Mark{Scope: scope, ID: []byte("a"), As: store.Waiting}
	b, _, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
	if err != nil {
		t.Fatal(err)
	}
	b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateReceived, Message: &semel.Message{}}}})
	claims, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: 7, Most: 1, Lease: lease})
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	mark.As, mark.Claim = store.Applied, claims[0].Claim
	return s, mark
}

func TestAClaimIfTheMarkerDoesNotWait(t *testing.T) {
	t.Run("law_12_it_begins_and_ends_nothing", func(t *testing.T) {
		s, mark := newClaimedStore(t, time.Hour)
		b, v, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
		if err != nil || v[0].Kind != store.Fresh {
			t.Fatal(v, err)
		}
		s.markers[identity{mark.Scope, "a"}] = marker{outcome: store.Applied} // as if a person had changed the marker in the database
		if err := b.Tx(0).Set("effect", []byte("1")); err != nil {
			t.Fatal(err)
		}
		end := store.Ending{Claims: []store.ClaimEnding{{Claim: mark.Claim, State: store.StateCompleted}}}
		if r := b.Commit(t.Context(), end); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost || s.Get("effect") != nil {
			t.Errorf("%+v, effect %q", r, s.Get("effect"))
		}
		b, v, err = s.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
		if err != nil || v[0].Kind != store.ClaimLost {
			t.Error(v, err)
		}
		b.Rollback(t.Context())
	})
}
