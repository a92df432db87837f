package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/keyclaim"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// newOldClaim returns a key with an earlier call of unknown outcome. The parameter since is the time between the first
// call and the claim.
func newOldClaim(since time.Duration) *leasedKey {
	c := &leasedKey{store: &leasedKeys{failOpen: &FailOpenPath{config: &Options{}}}, claim: keyclaim.Claim{Lease: time.Hour}, answer: keystore.Answer{State: keystore.Claimed, Left: time.Hour, Started: 2, Since: since}, requestedAt: time.Now()}
	c.claim.Hold(c.requestedAt, time.Hour)
	return c
}

// jobOf returns a job with this handler.
func jobOf(ctx context.Context, handle func() error) *Job[Call] {
	return &Job[Call]{Ctx: ctx, Lost: func(error) {}, Handle: func(Call) error { return handle() }}
}

func TestTrapT77TheWindowOfAKeyPassesAlsoAfterItsClaim(t *testing.T) {
	for _, wait := range []time.Duration{0, 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := newOldClaim(23*time.Hour + 58*time.Minute)
			defer c.claim.LetGo()
			<-time.After(wait) // as in a frozen process
			called := false
			c.store.config = &Options{Provider: Provider{Rule: calls.Rule{Window: 24 * time.Hour, Timeout: time.Minute}}, Timeouts: Timeouts{Timeout: time.Minute}}
			err := c.Run(jobOf(t.Context(), func() error { called = true; return nil }))
			if called != (wait == 0) || called == (err != nil) {
				t.Errorf("after another %v the call was made: %v, %v", wait, called, err)
			}
		})
	}
}

func TestNoCallIsMadeAfterTheKeyWasLostDuringLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newOldClaim(25 * time.Hour)
		c.store.config = &Options{Timeouts: Timeouts{Timeout: time.Minute}, Provider: Provider{Rule: calls.Rule{Window: 24 * time.Hour, Timeout: time.Minute, Asks: true}, Lookup: func(context.Context, *semel.Message) (Finding, error) {
			c.claim.LetGo() // as if another process had taken over the lease
			return DidNotHappen, nil
		}}}
		err := c.Run(jobOf(t.Context(), func() error { t.Error("called"); return nil }))
		if !errors.Is(err, store.ErrClaimLost) {
			t.Errorf("it says %v", err)
		}
	})
}
