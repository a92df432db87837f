package httphandler

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

func effectful(c *Config) { c.Effects = true }

func TestAnAnswerWithEffects(t *testing.T) {
	long := `{"effects":[]}` + strings.Repeat(" ", mostRead)
	for _, c := range []struct {
		name, kind, body string
		status           int
		without          bool // the policy declares no effects
		want, says       string
	}{
		{name: "effects", kind: EffectsType, body: `{"effects":[]}`, want: `{"effects":[]}`},
		{name: "effects_with_a_charset", kind: EffectsType + "; charset=utf-8", body: `{"effects":[1]}`, status: 201, want: `{"effects":[1]}`},
		{name: "nothing", status: 204},
		{name: "an_empty_body_of_another_type", kind: "text/plain"},
		{name: "effects_of_a_MiB", kind: EffectsType, body: long[:mostRead], want: long[:mostRead]},
		{name: "effects_of_more_than_a_MiB", kind: EffectsType, body: long[:mostRead+1], says: "effects of more than 1 MiB"},
		{name: "a_body_of_another_type", kind: "application/json", body: `{"` + secretText + `":[]}`, says: "a body that is not of the type"},
		{name: "a_body_of_no_type", kind: "", body: secretText, says: "a body that is not of the type"},
		{name: "effects_that_the_policy_does_not_know", kind: EffectsType, body: secretText, without: true, says: "with effects, and the policy declares none"},
		{name: "a_body_where_there_are_no_effects", kind: "application/json", body: "[]", without: true},
	} {
		t.Run("K10_"+c.name, func(t *testing.T) {
			accepts := make(chan string, 1)
			e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
				accepts <- r.Header.Get("Accept")
				w.Header()["Content-Type"] = []string{c.kind}
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
				_, _ = w.Write([]byte(c.body))
			})
			got, err := e.handler(t, func(config *Config) { config.Effects = !c.without }).Ask(t.Context(), message())
			if string(got) != c.want && c.says == "" || (got != nil) != (c.want != "") && c.says == "" {
				t.Errorf("%.50s", got)
			}
			var decided *semel.HandlerError
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says == "":
			case !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent || decided.Reason != reasonname.BadEffects || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secretText):
				t.Errorf("%v", err)
			}
			if asked := <-accepts; (asked == EffectsType) == c.without {
				t.Errorf("it asks for %q", asked)
			}
		})
	}
	t.Run("K10_effects_of_a_refusal_are_none", func(t *testing.T) {
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", EffectsType)
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"effects":[]}`))
		})
		if got, err := e.handler(t, effectful).Ask(t.Context(), message()); err == nil || got != nil || !strings.Contains(err.Error(), "422") {
			t.Errorf("%s, %v", got, err)
		}
	})
	t.Run("K10_effects_that_break_off_are_an_unknown_outcome", func(t *testing.T) {
		e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", EffectsType)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"effects":[]}`))
		})
		if got, err := e.handler(t, effectful).Ask(t.Context(), message()); err == nil || got != nil || !strings.Contains(err.Error(), "is unknown") {
			t.Errorf("%s, %v", got, err)
		}
	})
}
