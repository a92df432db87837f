package httpkey_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

// A Completer may be frozen after it found an abandoned request and before it claims the request. The test
// changes the key in the Completer's handler, before the guard runs.
func TestF2ACompleterRunsOnlyUnchangedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		status    int // status of the answer to a client's request before the Completer's claim
		forgotten bool
	}{
		"F2_not_what_was_answered_and_is_forgotten": {201, true},
		"F2_not_what_was_answered":                  {201, false},
		"F2_not_what_was_tried_once_more":           {500, false},
		"F2_what_nobody_asked_for":                  {0, false},
		"F2_not_what_is_forgotten":                  {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keys := memstore.NewKeys()
				died := &process{Keys: keys, dies: 5} // after the claim and the stored request
				newLeasedFixture(t, died, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, enableCompletion).post(`"k"`, "tea")
				advanceTime(3 * time.Minute)
				finished := &calls{status: 201}
				s := newLeasedFixture(t, keys, finished.serve, enableCompletion)
				guarded := s.handler
				s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if c.status != 0 {
						newLeasedFixture(t, keys, (&calls{status: c.status}).serve, enableCompletion).post(`"k"`, "tea")
					}
					if c.forgotten {
						advanceTime(config().Keep + time.Hour)
					}
					guarded.ServeHTTP(w, r)
				})
				if err := s.finishAbandoned(t); err != nil {
					t.Error(err)
				}
				if c.status == 0 && !c.forgotten {
					finished.want(t, 1)
				} else {
					finished.want(t, 0)
				}
			})
		})
	}
}

// No client waits for a Completer, so FailOpen does not apply.
func TestF2ACompleterRunsNothingUnprotected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(c *httpkey.Config, l *httpkey.LeaseConfig) {
			enableCompletion(c, l)
			l.Stepped, l.FailOpen = false, "a test"
		}
		away := &failingStore{}
		keys := away.keys()
		died := &process{Keys: keys, dies: 5}
		newLeasedFixture(t, died, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, open).post(`"k"`, "tea")
		advanceTime(3 * time.Minute)
		made := &calls{status: 201}
		s := newLeasedFixture(t, keys, made.serve, open)
		guarded := s.handler
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			away.setError(errAway)
			defer away.setError(nil)
			guarded.ServeHTTP(w, r)
		})
		if err := s.finishAbandoned(t); err == nil {
			t.Error("it reports no failure")
		}
		made.want(t, 0)
		s.handler = guarded
		if err := s.finishAbandoned(t); err != nil {
			t.Error(err)
		}
		made.want(t, 1)
	})
}
