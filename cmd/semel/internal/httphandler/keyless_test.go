package httphandler

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestCallsWithoutAKey(t *testing.T) {
	got := make(chan http.Header, 1)
	answers := func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Clone()
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		lost  bool
		words string
	}{
		"may_happen_twice": {false, "it carries no key, so another call may apply it twice"},
		"may_be_lost":      {true, "it carries no key and is not made again"},
	} {
		t.Run("E5_a_call_that_"+name+"_sends_none_and_says_what_follows", func(t *testing.T) {
			e := newEndpoint(t, answers)
			h := e.handler(t, func(config *Config) { config.NoKey, config.MayBeLost = true, c.lost })
			h.wantError(t, semel.DecideUnknown, c.words)
			if key, sent := (<-got)[headerKey]; sent {
				t.Errorf("the key %q was sent", key)
			}
		})
	}
}

func TestTheMeaningOfAStatusForACallThatMayBeLost(t *testing.T) {
	h := handlerOf(t, "http://localhost:1", func(c *Config) { c.NoKey, c.MayBeLost = true, true })
	t.Run("E5_only_what_says_that_nothing_was_done_is_made_again", func(t *testing.T) {
		for status := 300; status < 600; status++ {
			want := semel.DecidePermanent
			switch status {
			case 408, 409, 425, 429, 501, 503, 505, 511:
				want = semel.DecideRetry
			default:
				if status >= 500 {
					want = semel.DecideUnknown
				}
			}
			d, _ := decisionOf(t, h.classifyAnswer(answer{status: status, header: http.Header{}}, time.Now()))
			if d.Decision != want {
				t.Errorf("%d: %v, want %v", status, d.Decision, want)
			}
		}
	})
}

func TestNoProxyIsUsed(t *testing.T) {
	// net/http reads the proxy variables once per process, so the test cannot set them.
	if handlerOf(t, "http://localhost:1").transport.Proxy != nil {
		t.Error("a proxy would see calls, with their keys and credentials")
	}
}
