package httpkey_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

func TestTrap133AHandlerWithoutAnAnswerHasNoEffect(t *testing.T) {
	secret := errors.New("card 4111")
	for name, c := range map[string]struct {
		end  func()
		says string
	}{
		"F1_trap_133_it_panics":             {func() { panic(secret) }, "a *errors.errorString"},
		"F1_trap_133_it_panics_with_nil":    {func() { panic(nil) }, "nil"},
		"F1_trap_133_it_ends_its_goroutine": {runtime.Goexit, "ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			ends := true
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				effect(w, r)
				if ends {
					c.end()
				}
			}, nil)
			w := s.post(`"k"`, "tea")
			wantProblem(t, w, 500, "handler-failed")
			o := s.seen[0]
			if o.Err == nil || !strings.Contains(o.Err.Error(), c.says) || strings.Contains(o.Err.Error()+w.Body.String(), "4111") {
				t.Errorf("the observed error is %v: %s", o.Err, w.Body)
			}
			if s.countEffects() != "0" {
				t.Errorf("%s effects", s.countEffects())
			}
			ends = false
			if w := s.post(`"k"`, "tea"); w.Code != 201 || s.countEffects() != "1" {
				t.Errorf("the second: %d, %s effects", w.Code, s.countEffects())
			}
		})
	}
	t.Run("F1_trap_133_it_wants_the_connection_cut", func(t *testing.T) {
		s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			effect(w, r)
			panic(http.ErrAbortHandler)
		}, nil)
		defer func() {
			if p := recover(); p != http.ErrAbortHandler || s.countEffects() != "0" {
				t.Errorf("the panic is %v, with %s effects", p, s.countEffects())
			}
		}()
		s.post(`"k"`, "tea")
	})
}

func TestTrap134AHandlerThatDoesNotHeedItsContext(t *testing.T) {
	t.Run("F1_trap_134_is_answered_for_and_keeps_its_key_until_it_ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Stay") != "" {
					<-leave
				}
				effect(w, r)
			}, func(c *httpkey.Config) { c.Timeout = 10 * time.Second })
			began := time.Now()
			stay := func(r *http.Request) { r.Header.Set("X-Stay", "1") }
			wantProblem(t, s.post(`"k"`, "tea", stay), 504, "handler-timed-out")
			if took := time.Since(began); took != 11*time.Second {
				t.Errorf("its client waited %v", took)
			}
			wantProblem(t, s.post(`"k"`, "tea"), 409, "request-in-progress")
			drain, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if s.Drain(drain) {
				t.Error("Drain returned before the handler ended")
			}
			close(leave)
			if !s.Drain(t.Context()) || s.countEffects() != "0" {
				t.Errorf("the killed transaction had %s effects", s.countEffects())
			}
			if w := s.post(`"k"`, "tea"); w.Code != 201 || s.countEffects() != "1" {
				t.Errorf("the second: %d, %s effects", w.Code, s.countEffects())
			}
		})
	})
}

func TestF1AnAnswerIsBounded(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"F1_a_body_of_50_MB": func(w http.ResponseWriter, r *http.Request) {
			effect(w, r)
			piece := make([]byte, 1<<20)
			for range 50 {
				if _, err := w.Write(piece); !errors.Is(err, httpkey.ErrAnswerTooLarge) {
					t.Errorf("it is told %v", err)
				}
			}
		},
		"F1_headers_of_100_KB": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", strings.Repeat("l", 100_000))
			effect(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, handler, nil)
			wantProblem(t, s.post(`"k"`, "tea"), 500, "answer-too-large")
			if s.countEffects() != "0" {
				t.Errorf("%s effects", s.countEffects())
			}
			for _, rule := range []httpkey.Rule{httpkey.KeepAnswer, httpkey.ReleaseKey} {
				c := &calls{}
				count := func(w http.ResponseWriter, r *http.Request) {
					c.made.Add(1)
					handler(w, r)
				}
				s := newFixture(t, count, func(c *httpkey.Config) { c.ServerErrors = rule })
				s.post(`"k"`, "tea")
				wantProblem(t, s.post(`"k"`, "tea"), 500, "answer-too-large")
				c.want(t, 2) // the first call was rolled back
				c.made.Store(0)
				l := newLeasedFixture(t, memstore.NewKeys(), func(w http.ResponseWriter, r *http.Request) {
					c.made.Add(1)
					w.Header().Set("Link", strings.Repeat("l", 100_000))
					_, _ = w.Write(make([]byte, 100_000))
				}, func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.ServerErrors = rule })
				wantProblem(t, l.post(`"k"`, "tea"), 500, "answer-too-large")
				wantProblem(t, l.post(`"k"`, "tea"), 500, "answer-too-large")
				c.want(t, 1) // the handler does not run again
			}
		})
	}
}

func TestF1NothingOfAnAnswerIsFlushed(t *testing.T) {
	s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		effect(w, r)
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, httpkey.ErrHeldBack) {
			t.Errorf("it is flushed: %v", err)
		}
		if _, flushes := w.(http.Flusher); flushes {
			t.Error("the writer implements http.Flusher")
		}
	}, nil)
	if w := s.post(`"k"`, "tea"); w.Code != 201 {
		t.Errorf("%d", w.Code)
	}
}

// whoKey is the type of a context key.
type whoKey struct{}

func TestF2AHandlerGoesOnWithoutItsClient(t *testing.T) {
	ctx, gone := context.WithCancel(context.WithValue(t.Context(), whoKey{}, "a"))
	s := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		gone()
		if r.Context().Err() != nil || r.Context().Value(whoKey{}) != "a" {
			t.Errorf("its context: %v, %v", r.Context().Err(), r.Context().Value(whoKey{}))
		}
		if _, bounded := r.Context().Deadline(); !bounded {
			t.Error("the context has no deadline")
		}
		effect(w, r)
	}, nil)
	s.post(`"k"`, "tea", func(r *http.Request) { *r = *r.WithContext(ctx) })
	if w := s.post(`"k"`, "tea"); w.Header().Get(httpkey.ReplayedHeader) != "true" || s.countEffects() != "1" {
		t.Errorf("%d %v, %s effects", w.Code, w.Header(), s.countEffects())
	}
}
