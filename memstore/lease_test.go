package memstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestALeaseThatHasEnded(t *testing.T) {
	t.Run("law_6_begins_nothing_although_nobody_else_has_claimed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
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
			claims, err := s.Claim(t.Context(), contract.ClaimOptions{Consumer: "billing", Token: 7, Most: 1, Lease: time.Minute})
			if err != nil || len(claims) != 1 {
				t.Fatal(claims, err)
			}
			mark.As, mark.Claim = contract.Applied, claims[0].Claim
			for _, is := range []struct {
				after time.Duration
				want  contract.VerdictKind
			}{{time.Minute - 1, contract.Fresh}, {1, contract.ClaimLost}} {
				<-time.After(is.after)
				b, v, err := s.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark})
				if err != nil || v[0].Kind != is.want {
					t.Errorf("%v, %v, want %v", v, err, is.want)
				}
				if err == nil {
					b.Rollback(t.Context())
				}
			}
		})
	})
}
