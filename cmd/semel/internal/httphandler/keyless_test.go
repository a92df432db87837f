package httphandler

import (
	"io"
	"net/http"
	"testing"

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
		"may_happen_twice": {false, "it carries no key, is made again, and may happen twice"},
		"may_be_lost":      {true, "it carries no key and is not made again"},
	} {
		t.Run("E5_a_call_that_"+name+"_sends_none_and_says_what_follows", func(t *testing.T) {
			e := newEndpoint(t, answers)
			h := e.handler(t, func(config *Config) { config.NoKey, config.MayBeLost = true, c.lost })
			h.says(t, semel.DecideUnknown, c.words)
			if key, sent := (<-got)[headerKey]; sent {
				t.Errorf("the key %q was sent", key)
			}
		})
	}
}
