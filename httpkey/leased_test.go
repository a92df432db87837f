package httpkey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// newLeasedFixture returns a handler that is protected by leased keys.
func newLeasedFixture(t *testing.T, keys keystore.Store, handler http.HandlerFunc, change func(*httpkey.Config, *httpkey.LeaseConfig)) *fixture {
	t.Helper()
	s := &fixture{}
	c, l := config(), httpkey.LeaseConfig{Window: leasedkey.Always, AllowVolatile: "a test"}
	c.Observe = func(o httpkey.Observation) { s.seen = append(s.seen, o) }
	if change != nil {
		change(&c, &l)
	}
	g, err := httpkey.NewLeased(keys, c, l)
	if err != nil {
		t.Fatal(err)
	}
	s.Guard, s.handler = g, g.Protect(handler)
	return s
}

// calls is a handler that counts its calls and responds with a status.
type calls struct {
	made   atomic.Int64
	status int
	last   httpkey.Attempt
}

func (c *calls) serve(w http.ResponseWriter, r *http.Request) {
	c.made.Add(1)
	c.last, _ = httpkey.AttemptFrom(r.Context())
	w.WriteHeader(c.status)
}

// want fails unless the handler was called the given number of times.
func (c *calls) want(t *testing.T, made int64) {
	t.Helper()
	if n := c.made.Load(); n != made {
		t.Errorf("the handler was called %d times, want %d", n, made)
	}
}

// advanceTime waits until the duration d of virtual time has passed.
func advanceTime(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var errAway = errors.New("it is away")

// failingStore is a store of idempotency keys that returns an error while a test has set an error.
type failingStore struct{ with atomic.Pointer[error] }

// setError sets the error that the store returns. If err is nil, the store works.
func (f *failingStore) setError(err error) { f.with.Store(&err) }

func (f *failingStore) keys() *memstore.Keys {
	return memstore.NewKeys(memstore.Fail(func(string) error { return f.currentError() }))
}

func (f *failingStore) currentError() error {
	if err := f.with.Load(); err != nil {
		return *err
	}
	return nil
}

func TestF1AStoreThatIsDownRunsNothing(t *testing.T) {
	var f failingStore
	c := &calls{status: 201}
	s := newLeasedFixture(t, f.keys(), c.serve, nil)
	f.setError(errAway)
	w := s.post(`"k"`, "tea")
	wantProblem(t, w, http.StatusServiceUnavailable, "store-unavailable")
	if c.want(t, 0); w.Header().Get("Retry-After") == "" || s.seen[0].Err == nil {
		t.Errorf("%v, told as %+v", w.Header(), s.seen[0])
	}
	f.setError(nil)
	if w := s.post(`"k"`, "tea"); w.Code != 201 {
		t.Errorf("when the store works again: %d", w.Code)
	}
	t.Run("F1_unless_it_is_declared_to_fail_open", func(t *testing.T) {
		c := &calls{status: 201}
		s := newLeasedFixture(t, f.keys(), c.serve, func(_ *httpkey.Config, l *httpkey.LeaseConfig) { l.FailOpen = "a view may count twice" })
		f.setError(errAway)
		if w := s.post(`"k"`, "tea"); w.Code != 201 || s.seen[0].Fate != httpkey.Unprotected || s.seen[0].Err == nil {
			t.Errorf("%d, told as %+v", w.Code, s.seen)
		}
		if !c.last.Unknown || c.last.IdempotencyKey == "" {
			t.Errorf("the handler's attempt is %+v", c.last)
		}
	})
}

func TestF1AnAnswerIsHeldBackUntilItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failingStore
		c := &calls{status: 201}
		s := newLeasedFixture(t, f.keys(), func(w http.ResponseWriter, r *http.Request) {
			f.setError(errAway)
			c.serve(w, r)
		}, nil)
		wantProblem(t, s.post(`"k"`, "tea"), http.StatusServiceUnavailable, "answer-not-recorded")
		f.setError(nil)
		advanceTime(time.Minute)
		again := c.serve
		s.handler = s.Protect(http.HandlerFunc(again))
		if w := s.post(`"k"`, "tea"); w.Code != 201 || !c.last.Unknown || c.last.Number != 2 {
			t.Errorf("%d, the handler's attempt is %+v", w.Code, c.last)
		}
	})
}

func TestTrapT76AnAttemptThatTimedOutIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		status int
		calls  int64
	}{
		"F1_trap_T76_and_is_repeated_where_the_other_side_knows_its_key": {leasedkey.Always, 201, 2},
		"F1_trap_T76_and_is_never_repeated_where_it_knows_none":          {leasedkey.Never, 409, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := &calls{status: 201}
				slow := true
				s := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
					if slow {
						made.made.Add(1)
						<-r.Context().Done()
						return
					}
					made.serve(w, r)
				}, func(_ *httpkey.Config, l *httpkey.LeaseConfig) { l.Window = c.window })
				wantProblem(t, s.post(`"k"`, "tea"), http.StatusGatewayTimeout, "handler-timed-out")
				slow = false
				w := s.post(`"k"`, "tea")
				if made.want(t, c.calls); w.Code != c.status || c.status == 201 && (!made.last.Unknown || made.last.IdempotencyKey == "") {
					t.Errorf("%d, told %+v", w.Code, made.last)
				}
			})
		})
	}
}

// A rule can declare that an answer with an error had no effect. The rule ReleaseKey does not apply to a panic.
func TestTrapT75APanicIsNoPromiseThatNothingHappened(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		unknown bool
	}{
		"F1_trap_T75_of_a_panic":          {func(http.ResponseWriter, *http.Request) { panic("x") }, true},
		"F1_trap_T75_but_of_an_answer_is": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			keys := memstore.NewKeys()
			release := func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.ServerErrors = httpkey.ReleaseKey }
			newLeasedFixture(t, keys, c.handler, release).post(`"k"`, "tea")
			made := &calls{status: 201}
			s := newLeasedFixture(t, keys, made.serve, release)
			if s.post(`"k"`, "tea"); made.last.Unknown != c.unknown || made.last.Number != 2 {
				t.Errorf("the next attempt is %+v", made.last)
			}
			wantProblem(t, s.post(`"k"`, "coffee"), http.StatusUnprocessableEntity, "idempotency-key-reused")
		})
	}
}

func TestTrap133AHandlerThatEndsItsGoroutineKeepsItsKeyForALease(t *testing.T) {
	t.Run("F1_trap_133_the_next_is_told_of_it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ends, made := true, &calls{status: 201}
			s := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
				if ends {
					runtime.Goexit()
				}
				made.serve(w, r)
			}, nil)
			wantProblem(t, s.post(`"k"`, "tea"), 500, "handler-failed")
			ends = false
			wantProblem(t, s.post(`"k"`, "tea"), 409, "request-in-progress")
			advanceTime(time.Minute)
			if w := s.post(`"k"`, "tea"); w.Code != 201 || !made.last.Unknown {
				t.Errorf("%d, the handler's attempt is %+v", w.Code, made.last)
			}
		})
	})
}

// panickingStore is a store that panics.
type panickingStore struct{ keystore.Store }

func (panickingStore) ClaimKey(context.Context, keystore.Claim) (keystore.Answer, error) {
	panic("a store's own")
}

func TestAStoreThatPanicsEndsOneRequest(t *testing.T) {
	s := newLeasedFixture(t, panickingStore{memstore.NewKeys()}, effect, nil)
	wantProblem(t, s.post(`"k"`, "tea"), 500, "handler-failed")
	if s.seen[0].Err == nil || s.seen[0].Stack == nil {
		t.Errorf("the observation is %+v", s.seen[0])
	}
}

func TestF1AReplayAfterItsTimeIsANewRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{status: 201}
		s := newLeasedFixture(t, memstore.NewKeys(), c.serve, nil)
		s.post(`"k"`, "tea")
		advanceTime(71 * time.Hour)
		if s.post(`"k"`, "tea"); c.made.Load() != 1 {
			t.Error("the handler ran again while the key was kept")
		}
		advanceTime(time.Hour)
		s.post(`"k"`, "coffee")
		c.want(t, 2)
	})
}

func TestF1ACopyWaitsForAnotherProcess(t *testing.T) {
	for name, c := range map[string]struct {
		wait, took time.Duration
		status     int
	}{
		"F1_whose_answer_it_gets":     {10 * time.Second, 5 * time.Second, 201},
		"F1_for_as_long_as_it_is_to":  {5 * time.Second, 10 * time.Second, 409},
		"F1_and_not_at_all_unless_so": {0, 10 * time.Second, 409},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := memstore.NewKeys()
				slow := func(w http.ResponseWriter, _ *http.Request) {
					advanceTime(c.took)
					w.WriteHeader(201)
				}
				wait := func(to *httpkey.Config, _ *httpkey.LeaseConfig) { to.Wait = c.wait }
				here, there := newLeasedFixture(t, keys, slow, wait), newLeasedFixture(t, keys, slow, wait)
				ended := make(chan *httptest.ResponseRecorder)
				go func() { ended <- here.post(`"k"`, "tea") }()
				advanceTime(time.Second)
				began := time.Now()
				w := there.post(`"k"`, "tea")
				if took := time.Since(began); w.Code != c.status || took > max(c.wait, c.took) {
					t.Errorf("%d after %v", w.Code, took)
				}
				if w := <-ended; w.Code != 201 {
					t.Errorf("the first: %d", w.Code)
				}
			})
		})
	}
}

func TestF1ACopyGetsTheEndOfTheLeaseAsRetryAfter(t *testing.T) {
	for lease, after := range map[time.Duration]string{time.Minute: "59", time.Hour: "60"} {
		t.Run("F1_of_"+lease.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := memstore.NewKeys()
				of := func(_ *httpkey.Config, l *httpkey.LeaseConfig) { l.Lease = lease }
				here := newLeasedFixture(t, keys, func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, of)
				here.post(`"k"`, "tea")
				advanceTime(1100 * time.Millisecond)
				w := newLeasedFixture(t, keys, effect, of).post(`"k"`, "tea")
				wantProblem(t, w, http.StatusConflict, "request-in-progress")
				if got := w.Header().Get("Retry-After"); got != after { // never before the lease ends, and at most a minute
					t.Errorf("Retry-After is %q, want %s", got, after)
				}
			})
		})
	}
}

func TestLaw5AnAttemptThatLostItsClaimAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failingStore
		s := newLeasedFixture(t, f.keys(), func(w http.ResponseWriter, r *http.Request) {
			f.setError(store.ErrClaimLost)
			<-r.Context().Done()
			if !errors.Is(context.Cause(r.Context()), store.ErrClaimLost) {
				t.Errorf("the cause of the context is %v", context.Cause(r.Context()))
			}
			w.WriteHeader(201)
		}, nil)
		wantProblem(t, s.post(`"k"`, "tea"), http.StatusConflict, "request-in-progress")
	})
}

func TestTrapT76APersonResolvesUnknownOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		finding leasedkey.Finding
		status  int
		code    string
		calls   int64
	}{
		"F1_trap_T76_that_it_happened":      {leasedkey.Happened, 410, "answer-gone", 1},
		"F1_trap_T76_that_it_did_not":       {leasedkey.DidNotHappen, 201, "", 2},
		"F1_trap_T76_or_leaves_it_in_doubt": {leasedkey.StillUnknown, 409, "outcome-unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			made := &calls{status: 502}
			s := newLeasedFixture(t, memstore.NewKeys(), made.serve, func(_ *httpkey.Config, l *httpkey.LeaseConfig) { l.Window = leasedkey.Never })
			s.post(`"k"`, "tea")
			wantProblem(t, s.post(`"k"`, "tea"), 409, "outcome-unknown")
			made.status = 201
			if err := s.Resolve(t.Context(), "a", "k", c.finding); (err != nil) != (c.finding == leasedkey.StillUnknown) {
				t.Errorf("it says %v", err)
			}
			w := s.post(`"k"`, "tea")
			if made.want(t, c.calls); w.Code != c.status {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
			if c.code != "" {
				wantProblem(t, w, c.status, c.code)
			}
		})
	}
	s := newLeasedFixture(t, memstore.NewKeys(), effect, nil)
	if err := s.Resolve(t.Context(), "a", "never asked", leasedkey.Happened); !errors.Is(err, semel.ErrState) {
		t.Errorf("Resolve accepted a request that was never made: %v", err)
	}
	if err := newFixture(t, effect, nil).Resolve(t.Context(), "a", "k", leasedkey.Happened); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("of New: %v", err)
	}
}
