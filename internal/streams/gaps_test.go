package streams_test

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

func TestAClaimThatIsParkedForAGap(t *testing.T) {
	parks := func(reason semel.Reason, last int64) (store.ClaimEnding, bool) {
		claim := store.Claim{Number: 1, Token: 7}
		b := streams.Of([]store.Mark{{ID: []byte("m"), As: store.Parked, Claim: claim, Version: versions.Position{Stream: []byte("a"), Number: 3, Start: 1, Asks: true}}})
		b.All()[0].Last = last
		b.Judge([]store.Verdict{{Kind: store.Fresh}})
		e, moved := b.End(store.Ending{Claims: []store.ClaimEnding{{Claim: claim, State: store.StateParked, Reason: reason, Error: "not in time"}}})
		if len(moved) > 0 {
			t.Errorf("%v moves", moved)
		}
		return e.Claims[0], b.Came()
	}
	t.Run("B9_trap_T55_is_released_if_its_predecessor_has_come_since", func(t *testing.T) {
		if end, came := parks(semel.ReasonGap, 2); end.State != store.StateReceived || end.Reason != "" || end.Error != "" || !came {
			t.Errorf("%+v, %v", end, came)
		}
	})
	t.Run("B9_trap_T55_is_parked_if_not", func(t *testing.T) {
		if end, came := parks(semel.ReasonGap, 1); end.State != store.StateParked || end.Reason != semel.ReasonGap || came {
			t.Errorf("%+v, %v", end, came)
		}
	})
	t.Run("B9_one_that_is_parked_for_another_reason_stays_so", func(t *testing.T) {
		if end, came := parks(semel.ReasonExhausted, 2); end.State != store.StateParked || came {
			t.Errorf("%+v, %v", end, came)
		}
	})
}
