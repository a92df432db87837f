package memstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

func TestALeaseThatHasEnded(t *testing.T) {
	t.Run("law_6_begins_nothing_although_nobody_else_has_claimed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, mark := newClaimedStore(t, time.Minute)
			for _, is := range []struct {
				after time.Duration
				want  store.VerdictKind
			}{{time.Minute - 1, store.Fresh}, {1, store.ClaimLost}} {
				<-time.After(is.after)
				b, v, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{mark})
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
