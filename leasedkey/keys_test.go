package leasedkey_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// config returns a valid configuration.
func config() leasedkey.Config {
	return leasedkey.Config{Consumer: "billing", Keep: 30 * 24 * time.Hour, Window: 24 * time.Hour, AllowVolatile: "it is a test"}
}

// pass waits until the duration d of virtual time has passed.
func pass(d time.Duration) { <-time.After(d) }

// bench contains Keys and their store, whose failures a test chooses.
type bench struct {
	*leasedkey.Keys
	t     *testing.T
	store *memstore.Keys

	mutex sync.Mutex // guards the fields below
	fail  func(op string) error
	calls int
}

// setFault sets the function that makes the store fail. If f is nil, the store works.
func (b *bench) setFault(f func(op string) error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.fail = f
}

func (b *bench) fault(op string) error {
	b.mutex.Lock()
	fail := b.fail
	b.mutex.Unlock()
	if fail == nil {
		return nil
	}
	return fail(op)
}

func (b *bench) addCalls(n int) int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.calls += n
	return b.calls
}

func open(t *testing.T, change func(*leasedkey.Config)) *bench {
	t.Helper()
	b := &bench{t: t}
	b.store = memstore.NewKeys(memstore.Fail(b.fault))
	c := config()
	if change != nil {
		change(&c)
	}
	var err error
	if b.Keys, err = leasedkey.New(b.store, c); err != nil {
		t.Fatal(err)
	}
	return b
}

// do calls Keys.Do for the request "a" and counts the calls.
func (b *bench) do(call func(ctx context.Context, a leasedkey.Attempt) ([]byte, error)) (leasedkey.Answer, error) {
	return b.Do(b.t.Context(), leasedkey.Request{Source: "shop", ID: "a"}, func(ctx context.Context, a leasedkey.Attempt) ([]byte, error) {
		b.addCalls(1)
		return call(ctx, a)
	})
}

func succeed(context.Context, leasedkey.Attempt) ([]byte, error) { return []byte("charge 1"), nil }

// want compares an answer with the expected answer.
func (b *bench) want(a leasedkey.Answer, err error, state keystore.State, called bool, calls int) {
	b.t.Helper()
	if n := b.addCalls(0); err != nil || a.State != state || a.Called != called || n != calls {
		b.t.Errorf("the answer is %v, called %t, after %d calls, %v; want %v, %t, %d", a.State, a.Called, n, err, state, called, calls)
	}
}

func TestACallIsMadeOnceAndItsResultIsKept(t *testing.T) {
	b := open(t, nil)
	for n := range 3 {
		a, err := b.do(succeed)
		b.want(a, err, keystore.Completed, n == 0, 1)
		if string(a.Result) != "charge 1" {
			t.Errorf("the result is %q", a.Result)
		}
	}
}

func TestLaw2LaterRequestsFindTheKeyHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		var all sync.WaitGroup
		all.Go(func() {
			a, err := b.do(func(context.Context, leasedkey.Attempt) ([]byte, error) {
				pass(5 * time.Minute) // longer than the lease and the timeout
				return nil, nil
			})
			b.want(a, err, keystore.Completed, true, 1)
		})
		for range 10 {
			pass(29 * time.Second)
			a, err := b.do(succeed)
			if b.want(a, err, keystore.Held, false, 1); a.Left <= 0 || a.Left > time.Minute {
				t.Errorf("another process holds the key for %v", a.Left)
			}
		}
		all.Wait()
	})
}

func TestC4TheErrorOfACallDecidesTheOutcome(t *testing.T) {
	lost := errors.New("connection reset")
	for name, c := range map[string]struct {
		says          error
		state, next   keystore.State
		unknown, kept bool
	}{
		"done":                             {nil, keystore.Completed, keystore.Completed, false, true},
		"a duplicate at the other side":    {semel.Duplicate(lost), keystore.Completed, keystore.Completed, false, true},
		"it did not happen":                {semel.Retry(lost), keystore.Claimed, keystore.Claimed, false, false},
		"it never will":                    {semel.Permanent(lost), keystore.Failed, keystore.Failed, false, false},
		"a person has to look":             {semel.Park("fraud"), keystore.Failed, keystore.Failed, false, false},
		"trap_T76_nobody_knows":            {lost, keystore.Claimed, keystore.Claimed, true, false},
		"trap_T76_the_answer_ends":         {io.EOF, keystore.Claimed, keystore.Claimed, true, false},
		"trap_T76_a_time_out":              {context.DeadlineExceeded, keystore.Claimed, keystore.Claimed, true, false},
		"a time-out that is no time-out":   {semel.Retry(context.DeadlineExceeded), keystore.Claimed, keystore.Claimed, false, false},
		"an error that wraps its decision": {errors.Join(lost, semel.Permanent(lost)), keystore.Failed, keystore.Failed, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, nil)
			a, err := b.do(func(context.Context, leasedkey.Attempt) ([]byte, error) { return []byte("r"), c.says })
			if a.State != c.state || !a.Called || (err == nil) != c.kept || (len(a.Result) > 0) != c.kept {
				t.Fatalf("it is %+v, %v", a, err)
			}
			if err != nil && c.says != nil && !errors.Is(err, errors.Unwrap(c.says)) && !errors.Is(err, c.says) {
				t.Errorf("the error is %v", err)
			}
			var told leasedkey.Attempt
			a, err = b.do(func(_ context.Context, at leasedkey.Attempt) ([]byte, error) {
				told = at
				return nil, semel.Retry(lost)
			})
			if a.State != c.next || told.Unknown != c.unknown {
				t.Errorf("the next request returned %+v, %v; its attempt was %+v", a, err, told)
			}
		})
	}
}

func TestB7EachAttemptHasTheSameKey(t *testing.T) {
	b := open(t, nil)
	keys := map[string]int{}
	for n := range 4 {
		_, _ = b.do(func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
			if keys[a.IdempotencyKey]++; a.Number != n+1 {
				t.Errorf("attempt %d has the number %d", n+1, a.Number)
			}
			return nil, errors.New("nobody knows")
		})
	}
	if len(keys) != 1 {
		t.Errorf("the keys are %v", keys)
	}
	_, _ = b.Do(t.Context(), leasedkey.Request{Source: "shop2", ID: "a"}, func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
		keys[a.IdempotencyKey]++
		return nil, nil
	})
	if len(keys) != 2 {
		t.Error("another source has the same key")
	}
}

func TestLaw10AnotherContentUnderTheSameKeyIsAConflict(t *testing.T) {
	b := open(t, nil)
	for n, sum := range []byte{7, 7, 8} {
		want := keystore.Completed
		if sum == 8 {
			want = keystore.Conflict
		}
		f := semel.Fingerprint{Version: 1}
		f.Sum[0] = sum
		a, err := b.Do(t.Context(), leasedkey.Request{Source: "shop", ID: "a", Fingerprint: f}, succeed)
		if err != nil || a.State != want || a.Called != (n == 0) || sum == 8 && a.Result != nil {
			t.Errorf("with content %d Do returned %+v, %v", sum, a, err)
		}
	}
}

func TestACallThatPanicsLeavesAnUnknownOutcome(t *testing.T) {
	b := open(t, nil)
	a, err := b.do(func(context.Context, leasedkey.Attempt) ([]byte, error) { panic("card 4711") })
	if a.State != keystore.Claimed || err == nil || strings.Contains(err.Error(), "4711") {
		t.Fatalf("it is %+v, %v", a, err)
	}
	_, _ = b.do(func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
		if !a.Unknown {
			t.Error("the outcome is not unknown")
		}
		return nil, nil
	})
}

func TestACallIsEndedByItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(c *leasedkey.Config) { c.Timeout = 7 * time.Second })
		began := time.Now()
		_, err := b.do(func(ctx context.Context, _ leasedkey.Attempt) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 7*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestLaw5ACallThatLostItsKeyGetsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		down := errors.New("it is away")
		a, err := b.do(func(ctx context.Context, _ leasedkey.Attempt) ([]byte, error) {
			b.setFault(func(string) error { return down }) // until the lease has ended
			pass(61 * time.Second)                         // the call ignores its context
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("its context says %v", cause)
			}
			b.setFault(nil)
			if a, err := b.do(succeed); err != nil || a.State != keystore.Completed || !a.Called {
				t.Errorf("the other's is %+v, %v", a, err)
			}
			return []byte("late"), nil
		})
		if !errors.Is(err, store.ErrClaimLost) || a.State != keystore.Held {
			t.Errorf("it is %+v, %v", a, err)
		}
		if a, err := b.do(succeed); err != nil || string(a.Result) != "charge 1" {
			t.Errorf("what stands is %q, %v", a.Result, err)
		}
	})
}

func TestLaw13AStoreThatIsDown(t *testing.T) {
	down := errors.New("it is unplugged")
	t.Run("law_13_before_the_call_nobody_is_called", func(t *testing.T) {
		b := open(t, nil)
		for _, op := range []string{"key-before", "key-after"} {
			b.setFault(func(asked string) error {
				if asked == op {
					return down
				}
				return nil
			})
			if _, err := b.do(succeed); !errors.Is(err, down) || b.addCalls(0) != 0 {
				t.Errorf("%s: %d calls, %v", op, b.addCalls(0), err)
			}
		}
	})
	t.Run("law_13_after_it_the_end_is_recorded_when_it_is_back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, nil)
			a, err := b.do(func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
				back := time.Now().Add(40 * time.Second)
				b.setFault(func(string) error {
					if time.Now().Before(back) {
						return down
					}
					return nil
				})
				return succeed(ctx, at)
			})
			b.want(a, err, keystore.Completed, true, 1)
		})
	})
	t.Run("trap_119_one_that_stays_away_leaves_an_unknown_outcome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, nil)
			a, err := b.do(func(ctx context.Context, at leasedkey.Attempt) ([]byte, error) {
				b.setFault(func(string) error { return down })
				return succeed(ctx, at)
			})
			if !errors.Is(err, leasedkey.ErrNotRecorded) || !errors.Is(err, down) || a.State != keystore.Claimed || !a.Called {
				t.Fatalf("it is %+v, %v", a, err)
			}
			b.setFault(nil)
			_, _ = b.do(func(_ context.Context, a leasedkey.Attempt) ([]byte, error) {
				if !a.Unknown {
					t.Error("the outcome is not unknown")
				}
				return nil, nil
			})
		})
	})
}

func TestAResultThatIsTooLongIsNotKept(t *testing.T) {
	b := open(t, nil)
	long := func(context.Context, leasedkey.Attempt) ([]byte, error) {
		return make([]byte, keystore.MaxResult+1), nil
	}
	if a, err := b.do(long); err == nil || a.State != keystore.Completed {
		t.Errorf("it is %v, %v", a.State, err)
	}
	a, err := b.do(long)
	b.want(a, err, keystore.Completed, false, 1)
}
