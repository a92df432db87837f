package inbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

// slowLeases extends every claim; its response takes a while.
type slowLeases struct {
	store.Leases
	answer time.Duration
}

func (s *slowLeases) Extend(context.Context, []store.Claim, time.Duration) ([]int, error) {
	<-time.After(s.answer)
	return nil, nil
}

// The store's lease begins when the request reaches it, so a slow response leaves less of the lease.
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
