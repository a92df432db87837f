package memstore

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestAClaimWhoseMarkerDoesNotWait(t *testing.T) {
	t.Run("law_12_it_begins_and_ends_nothing", func(t *testing.T) {
		s := New()
		scope, err := s.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		mark := contract.Mark{Scope: scope, ID: []byte("a"), As: contract.Waiting}
		b, _, err := s.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark})
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(t.Context(), contract.Ending{Rows: []contract.Row{{State: contract.StateReceived, Message: &semel.Message{}}}})
		claims, err := s.Claim(t.Context(), contract.ClaimOptions{Consumer: "billing", Token: 7, Most: 1, Lease: time.Hour})
		if err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
		mark.As, mark.Claim = contract.Applied, claims[0].Claim
		b, v, err := s.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark})
		if err != nil || v[0].Kind != contract.Fresh {
			t.Fatal(v, err)
		}
		s.markers[identity{scope, "a"}] = marker{outcome: contract.Applied} // as by hand
		if err := b.Tx(0).Set("effect", []byte("1")); err != nil {
			t.Fatal(err)
		}
		end := contract.Ending{Claims: []contract.ClaimEnding{{Claim: claims[0].Claim, Event: contract.RowCompleted}}}
		if r := b.Commit(t.Context(), end); r.Outcome != contract.NotCommitted || r.Class != contract.ClassClaimLost || s.Get("effect") != nil {
			t.Errorf("%+v, effect %q", r, s.Get("effect"))
		}
		b, v, err = s.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark})
		if err != nil || v[0].Kind != contract.ClaimLost {
			t.Error(v, err)
		}
		b.Rollback(t.Context())
	})
}
