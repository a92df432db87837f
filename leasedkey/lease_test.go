package leasedkey_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/store"
)

// failAlways is the error of a store that cannot be reached.
func failAlways(string) error { return errors.New("the store cannot be reached") }

// untilEnded returns a call that records when and why its context ends.
func untilEnded(at *time.Time, why *error) func(context.Context, leasedkey.Attempt) ([]byte, error) {
	return func(ctx context.Context, _ leasedkey.Attempt) ([]byte, error) {
		<-ctx.Done()
		*at, *why = time.Now(), context.Cause(ctx)
		return nil, ctx.Err()
	}
}

func TestLaw5ACallEndsWithItsLease(t *testing.T) {
	longer := func(c *leasedkey.Config) { c.Timeout = 50 * time.Second } // the lease is one minute
	for name, open := range map[string]func(t *testing.T) *bench{
		"B11_whose_claim_was_answered_late": func(t *testing.T) *bench {
			b := open(t, longer)
			b.setFault(func(op string) error {
				if op == "key-after" {
					pass(40 * time.Second)
					b.setFault(failAlways)
				}
				return nil
			})
			return b
		},
		"B11_after_the_other_side_was_asked_for_a_long_time": func(t *testing.T) *bench {
			b := newBenchInDoubt(t, 48*time.Hour, func(c *leasedkey.Config) {
				longer(c)
				c.Ask = func(context.Context, leasedkey.Attempt) (leasedkey.Finding, []byte, error) {
					pass(49 * time.Second)
					return leasedkey.DidNotHappen, nil, nil
				}
			})
			b.setFault(func(op string) error {
				if op == "key-after" {
					b.setFault(failAlways)
				}
				return nil
			})
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t)
				claimed := time.Now()
				var ended time.Time
				var why error
				_, _ = b.do(untilEnded(&ended, &why))
				if took := ended.Sub(claimed); took > time.Minute {
					t.Errorf("the call's context ended %v after its claim, whose lease was a minute (%v)", took, why)
				}
			})
		})
	}
	t.Run("B11_of_which_the_store_says_that_it_is_anothers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, longer)
			claimed := time.Now()
			var ended time.Time
			var why error
			a, err := b.do(func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
				b.setFault(func(string) error { return store.ErrClaimLost }) // as a store that has lost the key does
				return untilEnded(&ended, &why)(ctx, at)
			})
			if took := ended.Sub(claimed); took > 20*time.Second || !errors.Is(why, store.ErrClaimLost) {
				t.Errorf("the call's context ended after %v: %v", took, why)
			}
			if a.State != keystore.Held || !errors.Is(err, store.ErrClaimLost) {
				t.Errorf("it is %+v, %v", a, err)
			}
		})
	})
	t.Run("B11_that_is_over_before_it_is_answered_is_not_begun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, longer)
			b.setFault(func(op string) error {
				if op == "key-after" {
					pass(time.Minute)
					b.setFault(nil)
				}
				return nil
			})
			a, err := b.do(succeed)
			if b.addCalls(0) != 0 || a.Called || a.State != keystore.Claimed || !errors.Is(err, store.ErrClaimLost) {
				t.Errorf("%d calls, %+v, %v", b.addCalls(0), a, err)
			}
			a, err = b.do(func(_ context.Context, at leasedkey.Attempt) ([]byte, error) {
				if at.Unknown {
					t.Error("no call was made, but the outcome is unknown")
				}
				return nil, semel.Duplicate(nil)
			})
			b.want(a, err, keystore.Completed, true, 1)
		})
	})
}

func TestLaw13TheOutcomeOfACallIsRecordedAfterItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		ctx, gone := context.WithCancel(t.Context())
		a, err := b.Do(ctx, leasedkey.Request{Source: "shop", ID: "a"}, func(context.Context, leasedkey.Attempt) ([]byte, error) {
			gone()
			back := time.Now().Add(3 * time.Second)
			b.setFault(func(op string) error {
				if time.Now().Before(back) {
					return failAlways(op)
				}
				return nil
			})
			return []byte("charge 1"), nil
		})
		if err != nil || a.State != keystore.Completed {
			t.Errorf("it is %+v, %v", a, err)
		}
		a, err = b.do(succeed)
		b.want(a, err, keystore.Completed, false, 0)
	})
}
