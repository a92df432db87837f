package pgxstore

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/services"
)

func TestMarkersOfANewerRelease(t *testing.T) {
	t.Run("P1_a_mark_that_meets_a_marker_of_a_newer_release_is_told_so", func(t *testing.T) {
		h := newShop(t, open(t, services.Postgres(t)))
		h.exec(t, "alter table in.semel_markers drop constraint if exists known_outcomes")
		wantCommitted(t, deliverDirect(t, h, []string{"held"}))
		for _, outcome := range []int{2, 9, 257, 0, -3} {
			h.exec(t, "update in.semel_markers set outcome = $1", outcome)
			for _, print := range []semel.Fingerprint{{}, {Version: 1, Sum: [16]byte{1}}} {
				marks := h.marks(t, "other", "held")
				marks[1].Fingerprint = print
				b, v := begin(t, h.Store, contract.TxOptions{}, marks)
				b.Rollback(t.Context())
				if v[0].Kind != contract.Fresh || v[1].Kind != contract.Newer || outcome == 9 && v[1].Was != 9 {
					t.Errorf("outcome %d: the verdicts are %v", outcome, v)
				}
			}
		}
	})
}
