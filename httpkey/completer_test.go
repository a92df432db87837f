package httpkey_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

// newAbandoned returns a test server and its store with an abandoned request "k", whose process died. All later
// requests are handled by the function handler.
func newAbandoned(t *testing.T, handler http.HandlerFunc, change func(*httpkey.Config, *httpkey.LeaseConfig), with ...func(*http.Request)) *fixture {
	t.Helper()
	keys := memstore.NewKeys()
	first := &process{Keys: keys, dies: 5} // after the claim and the stored request
	newLeasedFixture(t, first, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, change).post(`"k"`, "tea", with...)
	return newLeasedFixture(t, keys, handler, change)
}

func enableCompletion(c *httpkey.Config, l *httpkey.LeaseConfig) {
	enableSteps(c, l)
	l.Completion.Headers = []string{"x-currency"}
}

func TestF2ACompleterSendsTheClientsRequestWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		var body []byte
		var a httpkey.Attempt
		s := newAbandoned(t, func(w http.ResponseWriter, r *http.Request) {
			got = r
			body, _ = io.ReadAll(r.Body)
			a, _ = httpkey.AttemptFrom(r.Context())
			w.WriteHeader(201)
		}, enableCompletion, func(r *http.Request) {
			*r = *httptest.NewRequest(http.MethodPost, "/accounts/7/orders?gift=1", strings.NewReader("tea")) // as a server does
			r.Host = "shop.example"
			r.Header = http.Header{"X-Account": {"a"}, "Idempotency-Key": {`"k"`}, "Content-Type": {"text/plain"}, "Content-Encoding": {"br"}, "X-Currency": {"EUR"},
				"Authorization": {"Bearer secret"}, "Cookie": {"session=secret"}, "X-Other": {"secret"}}
		})
		mux := http.NewServeMux()
		mux.Handle("POST shop.example/accounts/{account}/orders", s.handler)
		s.handler = mux
		advanceTime(3 * time.Minute)
		if err := s.finishAbandoned(t); err != nil {
			t.Fatal(err)
		}
		if got == nil {
			t.Fatal("the handler did not run")
		}
		if string(body) != "tea" || got.URL.RawQuery != "gift=1" || got.PathValue("account") != "7" || a.Caller != "a" || a.Key != "k" || !a.Finishing || !a.Unknown || a.Number != 2 {
			t.Errorf("%s %s of %+v", got.URL, body, a)
		}
		if len(got.Header) != 3 || got.Header.Get("Content-Type") != "text/plain" || got.Header.Get("Content-Encoding") != "br" || got.Header.Get("X-Currency") != "EUR" {
			t.Errorf("its headers are %v", got.Header)
		}
		if o := s.seen[0]; o.Fate != httpkey.Finished || !o.Kept || o.Status != 201 {
			t.Errorf("the observation is %+v", o)
		}
	})
}

func TestF2ACompleterFinishesOnlyAbandonedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		after  time.Duration
		ran    bool
	}{
		"F2_what_was_answered":                {201, time.Hour, false},
		"F2_what_was_refused_for_good":        {422, time.Hour, false},
		"F2_what_its_client_is_to_send_again": {429, time.Hour, false},
		"F2_what_its_client_may_send_still":   {500, time.Minute, false},
		"F2_but_not_what_is_in_doubt":         {500, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := memstore.NewKeys()
				newLeasedFixture(t, keys, (&calls{status: c.status}).serve, enableCompletion).post(`"k"`, "tea")
				advanceTime(c.after)
				made := &calls{status: 201}
				if err := newLeasedFixture(t, keys, made.serve, enableCompletion).finishAbandoned(t); err != nil || (made.made.Load() == 1) != c.ran {
					t.Errorf("%v, after %d calls", err, made.made.Load())
				}
			})
		})
	}
}

func TestF2ACompleterDoesNotTryForEver(t *testing.T) {
	for name, c := range map[string]struct{ status, attempts int }{
		"F2_what_fails":       {503, 11},
		"F2_what_is_released": {429, 5}, // no client would repeat the request
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := &calls{status: c.status}
				s := newAbandoned(t, made.serve, func(to *httpkey.Config, l *httpkey.LeaseConfig) {
					enableCompletion(to, l)
					l.Completion.Attempts = c.attempts
				})
				done, err := s.Completer(s.handler)
				if err != nil {
					t.Fatal(err)
				}
				var at []time.Duration
				began := time.Now()
				ctx, stop := context.WithCancel(t.Context())
				go done.Run(ctx, func(err error) {
					at = append(at, time.Since(began).Round(time.Minute))
					var u *httpkey.UnfinishedError
					if !errors.As(err, &u) || u.Caller != "a" || u.Key != "k" || u.Attempts != len(at)+1 || u.Left != (u.Attempts == c.attempts) || strings.Contains(err.Error(), "k\"") {
						t.Errorf("the error is %v: %+v", err, u)
					}
				})
				advanceTime(48 * time.Hour)
				stop()
				synctest.Wait()
				if n := made.made.Load(); int(n) != c.attempts-1 || len(at) != c.attempts-1 || at[1]-at[0] < 2*time.Minute || at[3]-at[2] < 2*(at[1]-at[0]) {
					t.Errorf("%d calls, told after %v", n, at)
				}
				for i := 1; i < len(at); i++ {
					if gap := at[i] - at[i-1]; gap > time.Hour+5*time.Minute {
						t.Errorf("before attempt %d it waits for %v", i+2, gap)
					}
				}
				made.status = 201
				if w := s.post(`"k"`, "tea"); w.Code != 201 {
					t.Errorf("its client gets %d", w.Code)
				}
			})
		})
	}
}

func TestF2OneOfManyCompletersFinishesARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &calls{status: 201}
		s := newAbandoned(t, func(w http.ResponseWriter, r *http.Request) {
			advanceTime(time.Second)
			made.serve(w, r)
		}, func(c *httpkey.Config, l *httpkey.LeaseConfig) {
			enableCompletion(c, l)
			c.Observe, l.Completion.After = nil, 10*time.Second
		})
		advanceTime(3 * time.Minute)
		var done sync.WaitGroup
		for range 10 {
			done.Go(func() {
				if err := s.finishAbandoned(t); err != nil {
					t.Error(err)
				}
			})
		}
		done.Go(func() {
			if w := s.post(`"k"`, "tea"); w.Code != 201 && w.Code != 409 {
				t.Errorf("its client gets %d", w.Code)
			}
		})
		done.Wait()
		made.want(t, 1)
	})
}

// pagedKeys is a store that returns one key at a time. A real store returns some hundred keys.
type pagedKeys struct{ *memstore.Keys }

func (p pagedKeys) AbandonedKeys(ctx context.Context, of admin.AbandonedKeysQuery) (admin.AbandonedKeys, error) {
	of.Most = 1
	return p.Keys.AbandonedKeys(ctx, of)
}

func TestF2ACompleterWalksThroughAllKeysAndBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, made := memstore.NewKeys(), &calls{status: 201}
		leave := func(name string, n int) {
			for i := range n {
				died := &process{Keys: keys, dies: 5}
				newLeasedFixture(t, died, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, enableCompletion).post(fmt.Sprintf(`"%s %d"`, name, i), "tea")
			}
			advanceTime(3 * time.Minute)
		}
		s := newLeasedFixture(t, pagedKeys{keys}, made.serve, enableCompletion)
		c, err := s.Completer(s.handler)
		if err != nil {
			t.Fatal(err)
		}
		finishes := func(n int64) {
			t.Helper()
			if err := c.Pass(t.Context()); err != nil {
				t.Error(err)
			}
			made.want(t, n)
		}
		leave("first", 25)
		finishes(20)       // the number of requests in a pass is limited
		finishes(25)       // the next pass continues at the next key
		leave("later", 25) // an unfinished request between completed requests
		for range 4 {
			if err := c.Pass(t.Context()); err != nil {
				t.Error(err)
			}
		}
		made.want(t, 50)
	})
}

func TestF2ACompleterThatReachesNoGuardSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := &calls{status: 201}
		s := newAbandoned(t, made.serve, enableCompletion)
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
		advanceTime(3 * time.Minute)
		var u *httpkey.UnfinishedError
		if err := s.finishAbandoned(t); !errors.As(err, &u) || !strings.Contains(err.Error(), "401 before the guard is reached") {
			t.Errorf("it says %v", err)
		}
		made.want(t, 0)
	})
}

func TestF2ARequestThatIsTooLargeToBeStoredIsRefused(t *testing.T) {
	made := &calls{status: 201}
	s := newLeasedFixture(t, memstore.NewKeys(), made.serve, enableCompletion)
	wantProblem(t, s.post(`"k"`, strings.Repeat("x", keystore.MaxResult)), http.StatusRequestEntityTooLarge, "request-body-too-large")
	made.want(t, 0)
	if w := s.post(`"k"`, strings.Repeat("x", keystore.MaxResult-100)); w.Code != 201 {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

func TestF2ACompletionThatDoesNotFitIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*httpkey.LeaseConfig){
		`Completion.Headers contains "authorization"`: func(l *httpkey.LeaseConfig) { l.Completion.Headers = []string{"authorization"} },
		`Completion.Headers contains "COOKIE"`:        func(l *httpkey.LeaseConfig) { l.Completion.Headers = []string{"X-Currency", "COOKIE"} },
		"neither is below 0":                          func(l *httpkey.LeaseConfig) { l.Completion.After = -1 },
		"a key would be gone":                         func(l *httpkey.LeaseConfig) { l.Completion.After = 72 * time.Hour },
		"completed steps are unknown":                 func(l *httpkey.LeaseConfig) { l.FailOpen = "a test" },
	} {
		l := httpkey.LeaseConfig{Window: leasedkey.Always, AllowVolatile: "a test", Stepped: true, Completion: &httpkey.Completion{}}
		spoil(&l)
		if _, err := httpkey.NewLeased(memstore.NewKeys(), config(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
	}
	l := httpkey.LeaseConfig{Window: leasedkey.Always, AllowVolatile: "a test", Completion: &httpkey.Completion{}}
	if _, err := httpkey.NewLeased(struct{ keystore.Store }{memstore.NewKeys()}, config(), l); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("a store without notes: %v", err)
	}
	if _, err := newLeasedFixture(t, memstore.NewKeys(), effect, nil).Completer(nil); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("a guard without a completion: %v", err)
	}
	if _, err := newFixture(t, effect, nil).Completer(nil); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("a guard of New: %v", err)
	}
}
