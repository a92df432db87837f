package operate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestActsWithoutALineInTheChain(t *testing.T) {
	t.Run("G6_are_a_finding_once_they_are_a_day_old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			if err := s.Record(t.Context(), store.Act{Verb: "discard", Who: "ana"}); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int64{0, 1} {
				found, err := Verification{}.Verify(t.Context(), "main", s)
				if err != nil || found.Total != want || found.Unsealed != 1 {
					t.Errorf("%+v, %v, want %d", found, err, want)
				}
				<-time.After(audit.LongestUnsealed + time.Second)
			}
		})
	})
}
