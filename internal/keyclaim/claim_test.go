package keyclaim_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/keyclaim"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

var errAway = errors.New("it is away")

// keyStore responds to each extension and end as the test specifies.
type keyStore struct {
	keystore.Store
	extend  func(ctx context.Context) error
	end     func() error
	extends int
	ends    int
	class   store.Class
}

func (*keyStore) Durable() (keystore.Durability, string) { return keystore.Volatile, "a test" }

func (s *keyStore) ExtendKey(ctx context.Context, _ semel.Key, _ store.Token, _ time.Duration) error {
	s.extends++
	return s.extend(ctx)
}

func (s *keyStore) EndKey(context.Context, semel.Key, store.Token, keystore.Ending) error {
	s.ends++
	return s.end()
}

func (s *keyStore) Classify(error) store.Class { return s.class }

// newHeldClaim returns a claim with a lease of a minute. The function lost returns when and why the claim was
// lost.
func newHeldClaim(s *keyStore, unheeded bool) (c *keyclaim.Claim, lost func() (time.Time, error)) {
	c = &keyclaim.Claim{Store: s, Lease: time.Minute, Unheeded: unheeded}
	var at time.Time
	var why error
	c.Hold(time.Now(), time.Minute)
	c.Holds(func(err error) { at, why = time.Now(), err })
	return c, func() (time.Time, error) { return at, why }
}

// pass waits for a duration of virtual time.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestALeaseIsHeldAsLongAsTheStoreGranted(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, c := range map[string]struct {
		extend   func(context.Context) error
		unheeded bool
		lostAt   time.Duration // 0 means that the claim is not lost
		why      error
	}{
		"law_5_it_is_extended":                                 {func(context.Context) error { return nil }, false, 0, nil},
		"law_5_a_silent_store_is_retried_until_the_lease_ends": {silent, false, time.Minute, context.DeadlineExceeded},
		"law_5_and_so_is_a_store_that_is_down":                 {func(context.Context) error { return errAway }, false, time.Minute, errAway},
		"law_5_a_claim_of_another_process_is_lost_at_once":     {func(context.Context) error { return store.ErrClaimLost }, false, 20 * time.Second, store.ErrClaimLost},
		"C10_an_unheeded_claim_continues":                      {silent, true, 0, nil},
		"C10_but_not_if_another_process_has_it":                {func(context.Context) error { return store.ErrClaimLost }, true, 20 * time.Second, store.ErrClaimLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := &keyStore{extend: c.extend}, time.Now()
				claim, lost := newHeldClaim(s, c.unheeded)
				defer claim.LetGo()
				pass(10 * time.Minute)
				at, why := lost()
				if held := c.lostAt == 0; held != claim.Holds(nil) || held != at.IsZero() || !held && at.Sub(began) != c.lostAt || !errors.Is(why, c.why) {
					t.Errorf("held: %t; lost after %v: %v", claim.Holds(nil), at.Sub(began), why)
				}
				if over := c.lostAt == time.Minute; over && !strings.HasPrefix(why.Error(), "the lease ended and could not be extended") {
					t.Errorf("the error is %v", why)
				}
			})
		})
	}
	t.Run("law_5_a_claim_that_was_granted_late_ends_earlier", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			claim := &keyclaim.Claim{Store: &keyStore{extend: silent}, Lease: time.Minute}
			began := time.Now()
			pass(50 * time.Second)
			claim.Hold(began, time.Minute)
			over := make(chan time.Time, 1)
			claim.Holds(func(error) { over <- time.Now() })
			if at := <-over; at.Sub(began) != time.Minute {
				t.Errorf("the lease ended after %v", at.Sub(began))
			}
		})
	})
}

func TestNoExtensionAfterLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &keyStore{extend: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		claim, lost := newHeldClaim(s, false)
		pass(25 * time.Second) // an extension is running
		claim.LetGo()
		synctest.Wait() // the extension must end before the end of the test
		claim.LetGo()
		pass(10 * time.Minute)
		if at, _ := lost(); s.extends != 1 || !at.IsZero() || claim.Holds(nil) {
			t.Errorf("it was extended %d times, and lost at %v", s.extends, at)
		}
	})
}

func TestEndRetriesUntilTheStoreAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		says  error
		class store.Class
		ends  int
		want  error
	}{
		"law_13_retried_while_the_store_is_down":       {errAway, store.ClassDown, 5, nil},
		"not_retried_if_another_process_has_the_claim": {store.ErrClaimLost, store.ClassDown, 1, store.ErrClaimLost},
		"not_retried_after_a_permanent_error":          {errAway, store.ClassPermanent, 1, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &keyStore{extend: func(context.Context) error { return nil }, class: c.class}
				s.end = func() error {
					if s.ends < 5 {
						return c.says
					}
					return nil
				}
				claim, _ := newHeldClaim(s, false)
				began, first, told := time.Now(), time.Duration(-1), 0
				claim.Refused = func(err error, wait time.Duration) {
					if told++; first < 0 {
						first = time.Since(began)
					}
					if !errors.Is(err, c.says) || wait <= 0 {
						t.Errorf("Refused got %v, %v", err, wait)
					}
				}
				defer func() {
					if told != c.ends-1 || first > 0 {
						t.Errorf("Refused was called %d times, first after %v", told, first)
					}
				}()
				if err := claim.End(t.Context(), keystore.Ending{}); !errors.Is(err, c.want) || s.ends != c.ends {
					t.Errorf("%v after %d times", err, s.ends)
				}
				if claim.Holds(nil) {
					t.Error("the claim is still held")
				}
			})
		})
	}
	t.Run("law_13_until_the_context_ends_and_with_extensions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &keyStore{extend: func(context.Context) error { return nil }, end: func() error { return errAway }, class: store.ClassDown}
			claim, lost := newHeldClaim(s, false)
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			err := claim.End(ctx, keystore.Ending{})
			if synctest.Wait(); !errors.Is(err, errAway) || s.extends < 4 {
				t.Errorf("%v, extended %d times", err, s.extends)
			}
			if at, _ := lost(); !at.IsZero() {
				t.Errorf("it was lost at %v", at)
			}
		})
	})
}

// The store counts a lease from the time when it received the request. If the response is slow, less of the
// lease is left when the response arrives.
func TestAnExtendedLeaseIsCountedFromTheRequest(t *testing.T) {
	t.Run("law_5_a_slow_answer_leaves_less_of_the_lease", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, began := &keyStore{}, time.Now()
			s.extend = func(ctx context.Context) error {
				if s.extends > 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return answerAfter(15 * time.Second)
			}
			claim, lost := newHeldClaim(s, false)
			defer claim.LetGo()
			pass(10 * time.Minute)
			if at, _ := lost(); at.Sub(began) != 80*time.Second { // requested after 20 s, for a minute
				t.Errorf("the claim was lost after %v, want 1m20s", at.Sub(began))
			}
		})
	})
}

// answerAfter returns a function that succeeds after a delay.
func answerAfter(d time.Duration) error {
	<-time.After(d)
	return nil
}
