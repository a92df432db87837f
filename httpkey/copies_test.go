package httpkey_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestF1TwoHundredCopiesAtOnceRunTheHandlerOnce(t *testing.T) {
	for name, open := range map[string]func(*testing.T, http.HandlerFunc) *fixture{
		"F2_in_a_transaction": func(t *testing.T, h http.HandlerFunc) *fixture {
			return newFixture(t, h, func(c *httpkey.Config) { c.Wait, c.Observe = 20*time.Second, nil })
		},
		"F1_with_a_lease": func(t *testing.T, h http.HandlerFunc) *fixture {
			return newLeasedFixture(t, memstore.NewKeys(), h, func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.Wait, c.Observe = 20*time.Second, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran atomic.Int64
				s := open(t, func(w http.ResponseWriter, r *http.Request) {
					n := ran.Add(1)
					advanceTime(10 * time.Second) // all repeated requests have arrived
					w.Header().Set("Set-Cookie", "session=secret")
					w.WriteHeader(201)
					_, _ = fmt.Fprintf(w, "run %d", n)
				})
				replayed := atomic.Int64{}
				var all sync.WaitGroup
				for range 200 {
					all.Go(func() {
						w := s.post(`"k"`, "tea")
						if w.Code != 201 || w.Body.String() != "run 1" {
							t.Errorf("%d: %s", w.Code, w.Body)
						}
						if w.Header().Get(httpkey.ReplayedHeader) == "true" {
							replayed.Add(1)
							if w.Header().Get("Set-Cookie") != "" {
								t.Error("a copy got a header that is not kept")
							}
						}
					})
				}
				all.Wait()
				if ran.Load() != 1 || replayed.Load() != 199 {
					t.Errorf("%d runs, %d replays", ran.Load(), replayed.Load())
				}
			})
		})
	}
}

func TestF1CopiesInOneProcessTakeUpOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := atomic.Int64{}
		leave := make(chan struct{})
		s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			<-leave
			effect(w, r)
		}, func(c *httpkey.Config) { c.MostOpen, c.Observe = 2, nil }, memstore.Fail(func(op string) error {
			if op == "begin" {
				begun.Add(1)
			}
			return nil
		}))
		var all sync.WaitGroup
		answers := make(chan *httptest.ResponseRecorder, 50)
		for range 50 {
			all.Go(func() { answers <- s.post(`"k"`, "tea") })
		}
		synctest.Wait()
		if begun.Load() != 1 || len(answers) != 49 {
			t.Errorf("%d transactions began, %d copies were answered", begun.Load(), len(answers))
		}
		for range len(answers) {
			wantProblem(t, <-answers, http.StatusConflict, "request-in-progress")
		}
		wantProblem(t, s.post(`"k"`, "coffee"), http.StatusUnprocessableEntity, "idempotency-key-reused")
		close(leave)
		all.Wait()
		if w := <-answers; w.Code != 201 {
			t.Errorf("the first: %d", w.Code)
		}
	})
}

func TestF1CallersWithOneKeyDoNotWaitForEachOther(t *testing.T) {
	t.Run("F1_trap_T74_each_runs_and_gets_its_own_answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				<-time.After(time.Second) // both requests have arrived
				a, _ := httpkey.AttemptFrom(r.Context())
				_, _ = io.WriteString(w, "of "+a.Caller)
			}, func(c *httpkey.Config) { c.Wait, c.Observe = time.Minute, nil })
			var all sync.WaitGroup
			for _, account := range []string{"a", "b"} {
				all.Go(func() {
					w := s.post(`"k"`, "tea", func(r *http.Request) { r.Header.Set("X-Account", account) })
					if w.Body.String() != "of "+account || w.Header().Get(httpkey.ReplayedHeader) != "" {
						t.Errorf("%s gets %d %v: %s", account, w.Code, w.Header(), w.Body)
					}
				})
			}
			all.Wait()
		})
	})
}

func TestF1ACopyDoesNotWaitAfterItsClientDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			advanceTime(20 * time.Second)
			effect(w, r)
		}, func(c *httpkey.Config) { c.Wait, c.Observe = time.Minute, nil })
		first := make(chan int)
		go func() { first <- s.post(`"k"`, "tea").Code }()
		synctest.Wait()
		ctx, gone := context.WithTimeout(t.Context(), time.Second)
		defer gone()
		began := time.Now()
		wantProblem(t, s.post(`"k"`, "tea", func(r *http.Request) { *r = *r.WithContext(ctx) }), http.StatusConflict, "request-in-progress")
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waits for %v", took)
		}
		if code := <-first; code != 201 {
			t.Errorf("the first: %d", code)
		}
	})
}

// If an answer was not kept, a repeated request does not get this answer.
func TestF1ACopyOfAReleasedRequestMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			advanceTime(time.Second)
			w.WriteHeader(http.StatusTooManyRequests)
		}, func(c *httpkey.Config) { c.Wait, c.Observe = time.Minute, nil })
		codes := make(chan int, 2)
		for range 2 {
			go func() { codes <- s.post(`"k"`, "tea").Code }()
		}
		if a, b := <-codes, <-codes; a+b != http.StatusTooManyRequests+http.StatusConflict {
			t.Errorf("the statuses are %d and %d", a, b)
		}
	})
}

// After the effect of a failed request is rolled back, and before the error answer is committed, another process may
// answer the request.
func TestF2AnErrorIsNotKeptIfAnotherAnswerExists(t *testing.T) {
	s := newFixture(t, nil, nil)
	other, err := httpkey.New[*memstore.Tx](s.store, config())
	if err != nil {
		t.Fatal(err)
	}
	there := &fixture{Guard: other, store: s.store, handler: other.ProtectFunc(effect)}
	raced := racingStore{Store: s.store, between: func() { there.post(`"k"`, "tea") }}
	g, err := httpkey.New[*memstore.Tx](&raced, config())
	if err != nil {
		t.Fatal(err)
	}
	here := &fixture{Guard: g, store: s.store, handler: g.ProtectFunc(func(w http.ResponseWriter, r *http.Request) {
		raced.armed = true
		w.WriteHeader(http.StatusUnprocessableEntity)
	})}
	w := here.post(`"k"`, "tea")
	if w.Code != 201 || w.Header().Get(httpkey.ReplayedHeader) != "true" || here.countEffects() != "1" {
		t.Errorf("%d %v, %s effects", w.Code, w.Header(), here.countEffects())
	}
}

// racingStore is a store with which another process acts before the next transaction begins.
type racingStore struct {
	*memstore.Store
	armed   bool
	between func()
}

func (r *racingStore) Begin(ctx context.Context, o store.TxOptions, m []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	if r.armed {
		r.armed = false
		r.between()
	}
	return r.Store.Begin(ctx, o, m)
}
