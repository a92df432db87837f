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
	"github.com/semel-go/semel/memstore"
)

func loseResponse(context.Context, leasedkey.Attempt) ([]byte, error) {
	return nil, errors.New("no answer came")
}

// newBenchInDoubt returns a bench with an attempt whose outcome has been unknown for the duration ago.
func newBenchInDoubt(t *testing.T, ago time.Duration, change func(*leasedkey.Config)) *bench {
	t.Helper()
	b := open(t, change)
	_, _ = b.do(loseResponse)
	pass(ago)
	return b
}

func TestTrapT77AForgottenKeyIsNotUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		window, ago time.Duration
		doubt       bool
	}{
		"inside the window":                      {24 * time.Hour, 23 * time.Hour, false},
		"less one time-out":                      {24 * time.Hour, 24*time.Hour - 30*time.Second, true},
		"a moment before":                        {24 * time.Hour, 24*time.Hour - 31*time.Second, false},
		"after the window":                       {24 * time.Hour, 25 * time.Hour, true},
		"a side that knows keys for ever":        {leasedkey.Always, 29 * 24 * time.Hour, false},
		"a side that knows none, after a moment": {leasedkey.Never, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchInDoubt(t, c.ago, func(to *leasedkey.Config) { to.Window = c.window })
				a, err := b.do(succeed)
				if c.doubt != errors.Is(err, leasedkey.ErrInDoubt) || c.doubt == a.Called || (b.addCalls(0) == 1) != c.doubt {
					t.Errorf("%v after the attempt, Do returned %+v, %v after %d calls", c.ago, a, err, b.addCalls(0))
				}
			})
		})
	}
	t.Run("E3_what_is_known_not_to_have_happened_is_no_doubt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, nil)
			_, _ = b.do(func(context.Context, leasedkey.Attempt) ([]byte, error) {
				return nil, semel.Retry(errors.New("refused"))
			})
			pass(48 * time.Hour)
			a, err := b.do(succeed)
			b.want(a, err, keystore.Completed, true, 2)
		})
	})
}

// slowClaims is a store whose responses to claims are delayed.
type slowClaims struct {
	keystore.Store
	answer time.Duration
}

func (s *slowClaims) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	a, err := s.Store.ClaimKey(ctx, c)
	pass(s.answer)
	return a, err
}

func TestTrapT77TheWayOfTheClaimsAnswerCountsAsAge(t *testing.T) {
	for _, answer := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBenchInDoubt(t, 24*time.Hour-35*time.Second, nil)
			keys, err := leasedkey.New(&slowClaims{b.store, answer}, config())
			if err != nil {
				t.Fatal(err)
			}
			b.Keys = keys
			if a, err := b.do(succeed); a.Called != (answer == 0) || errors.Is(err, leasedkey.ErrInDoubt) != (answer > 0) {
				t.Errorf("with an answer that took %v, Do returned %+v, %v", answer, a, err)
			}
		})
	}
}

func TestE3TheOtherSideIsAsked(t *testing.T) {
	away := errors.New("no response")
	for name, c := range map[string]struct {
		finding leasedkey.Finding
		err     error
		state   keystore.State
		called  bool
		result  string
	}{
		"E3_it_happened":          {leasedkey.Happened, nil, keystore.Completed, false, "found"},
		"E3_it_did_not_happen":    {leasedkey.DidNotHappen, nil, keystore.Completed, true, "charge 1"},
		"E3_it_does_not_know":     {leasedkey.StillUnknown, nil, keystore.Claimed, false, ""},
		"E3_it_does_not_answer":   {leasedkey.Happened, away, keystore.Claimed, false, ""},
		"E3_who_asks_it_panics":   {leasedkey.Happened, errPanic, keystore.Claimed, false, ""},
		"E3_it_answers_with_junk": {leasedkey.Finding(99), nil, keystore.Claimed, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchInDoubt(t, 48*time.Hour, func(to *leasedkey.Config) {
					to.Ask = func(_ context.Context, a leasedkey.Attempt) (leasedkey.Finding, []byte, error) {
						if !a.Unknown || a.Since < 48*time.Hour || a.IdempotencyKey == "" {
							t.Errorf("Ask got the attempt %+v", a)
						}
						if errors.Is(c.err, errPanic) {
							panic("x")
						}
						return c.finding, []byte("found"), c.err
					}
				})
				a, err := b.do(succeed)
				if a.State != c.state || a.Called != c.called || string(a.Result) != c.result || (err == nil) != (c.result != "") {
					t.Errorf("it is %+v, %v", a, err)
				}
				if err != nil && !errors.Is(err, leasedkey.ErrInDoubt) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

var errPanic = errors.New("it panics")

func TestE3APersonDecidesOnlyAboutExistingKeys(t *testing.T) {
	b := open(t, nil)
	if err := b.Resolve(t.Context(), "shop", "a", leasedkey.Happened, nil); !errors.Is(err, semel.ErrState) {
		t.Errorf("Resolve accepted a request that was never made: %v", err)
	}
	_, _ = b.do(func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
		if a.Number != 1 {
			t.Errorf("the first attempt is number %d, so Resolve has created a key", a.Number)
		}
		return nil, nil
	})
}

func TestE3APersonDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchInDoubt(t, 48*time.Hour, nil)
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.StillUnknown, nil); err == nil {
			t.Error("Resolve accepted StillUnknown")
		}
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.DidNotHappen, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.Happened, nil); !errors.Is(err, semel.ErrState) {
			t.Errorf("Resolve accepted a request whose outcome is known: %v", err)
		}
		_, _ = b.do(loseResponse) // the call may be made again
		pass(48 * time.Hour)
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.Happened, []byte("seen in their books")); err != nil {
			t.Fatal(err)
		}
		a, err := b.do(succeed)
		if b.want(a, err, keystore.Completed, false, 2); string(a.Result) != "seen in their books" {
			t.Errorf("the result is %q", a.Result)
		}
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.DidNotHappen, nil); !errors.Is(err, semel.ErrState) {
			t.Errorf("Resolve accepted a completed request: %v", err)
		}
	})
}

func TestTrapT77AnErrorThatWrapsUnknownIsUnknown(t *testing.T) {
	lost := errors.New("no answer came")
	for name, call := range map[string]func(context.Context, leasedkey.Attempt) ([]byte, error){
		"that waits": func(context.Context, leasedkey.Attempt) ([]byte, error) {
			return nil, semel.RetryAfter(semel.Unknown(lost), time.Minute)
		},
		"that ends it": func(context.Context, leasedkey.Attempt) ([]byte, error) {
			return nil, semel.Permanent(semel.Unknown(lost))
		},
		"that comes too late": func(ctx context.Context, _ leasedkey.Attempt) ([]byte, error) {
			<-ctx.Done()
			return nil, semel.Retry(ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := open(t, nil)
				if a, err := b.do(call); err == nil || a.State != keystore.Claimed {
					t.Errorf("it is %+v, %v", a, err)
				}
				pass(25 * time.Hour)
				if a, err := b.do(succeed); !errors.Is(err, leasedkey.ErrInDoubt) || a.Called {
					t.Errorf("after the window Do returned %+v, %v: it repeated the call", a, err)
				}
			})
		})
	}
}

func TestAResultThatIsTooLongStillCompletesTheKey(t *testing.T) {
	long := make([]byte, keystore.MaxResult+1)
	synctest.Test(t, func(t *testing.T) {
		b := newBenchInDoubt(t, 25*time.Hour, func(to *leasedkey.Config) {
			to.Ask = func(context.Context, leasedkey.Attempt) (leasedkey.Finding, []byte, error) {
				return leasedkey.Happened, long, nil
			}
		})
		if a, err := b.do(succeed); err == nil || a.State != keystore.Completed || a.Called || a.Result != nil {
			t.Errorf("it is %+v, %v", a, err)
		}
		if a, err := b.do(succeed); err != nil || a.State != keystore.Completed || a.Called {
			t.Errorf("a copy is %+v, %v", a, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBenchInDoubt(t, 25*time.Hour, nil)
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.Happened, long); err == nil {
			t.Error("Resolve accepted a result that is too long")
		}
		if err := b.Resolve(t.Context(), "shop", "a", leasedkey.Happened, nil); err != nil {
			t.Errorf("after that Resolve returned %v", err)
		}
	})
}

// lateAnswers is a store that delays its responses to claims.
type lateAnswers struct {
	keystore.Store
	late time.Duration
}

func (s lateAnswers) ClaimKey(ctx context.Context, c keystore.Claim) (keystore.Answer, error) {
	defer pass(s.late)
	return s.Store.ClaimKey(ctx, c)
}

func TestNoCallIsMadeAfterTheLeaseHasEnded(t *testing.T) {
	for late, called := range map[time.Duration]bool{59 * time.Second: true, time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			keys, err := leasedkey.New(lateAnswers{memstore.NewKeys(), late}, config())
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			a, err := keys.Do(t.Context(), leasedkey.Request{ID: "a"}, func(context.Context, leasedkey.Attempt) ([]byte, error) {
				calls++
				return nil, nil
			})
			if (calls > 0) != called || a.Called != called || (err == nil) != called {
				t.Errorf("with a delay of %v Do returned %+v, %v after %d calls", late, a, err, calls)
			}
		})
	}
}
