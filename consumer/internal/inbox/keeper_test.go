package inbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

// slowLeases is a store that extends every claim and responds after a while.
type slowLeases struct {
	store.Leases
	answer time.Duration
}

func (s *slowLeases) Extend(context.Context, []store.Claim, time.Duration) ([]int, error) {
	<-time.After(s.answer)
	return nil, nil
}

// In the store, an extended lease begins when the request reaches the store. If the response is slow, less of
// the lease is left when the response arrives.
func TestLaw5TheKeeperCountsAnExtendedLeaseFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(&slowLeases{answer: 15 * time.Second}, time.Minute, func(err error) { t.Error(err) })
		began := time.Now()
		h := &ClaimedRow{tokens: []store.Token{7}, ends: began.Add(30 * time.Second)}
		k.Begin([]*ClaimedRow{h}, began.Add(time.Hour), func(err error) { t.Errorf("lost: %v", err) })
		k.extend(t.Context(), began)
		if got := h.ends.Sub(began); got != time.Minute {
			t.Errorf("the lease ends %v after the question, want 1m0s", got)
		}
	})
}
