package assembly

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestASenderOutlivesItsWriters(t *testing.T) {
	writes := func(name string, to ...string) *policy.Consumer {
		c := &policy.Consumer{Name: name}
		c.Handler.HTTP = &policy.HTTP{Effects: &policy.HTTPEffects{Intents: to}}
		return c
	}
	steps := &policy.Consumer{Name: "steps"}
	steps.Handler.SQL = &policy.SQL{Steps: []policy.SQLStep{{Name: "one"}, {Name: "two", Intents: []policy.SQLIntent{{To: "mailer"}}}}}
	p := &policy.Policy{Consumers: []*policy.Consumer{
		writes("booking", "mailer", "ping"), steps, writes("mailer"), writes("ping", "pong"), writes("pong", "ping", "last"), writes("last"),
	}}
	for name, want := range map[string][]string{
		"booking": nil, "mailer": {"booking", "steps"}, "last": {"pong"},
		"ping": {"booking"}, // pong is left out, because pong itself waits for ping
		"pong": nil,
	} {
		if got := writersTo(p, p.Consumer(name)); !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v", name, got, want)
		}
	}
	a := &Assembly{policy: p}
	booking, other := a.activeRuns.begin("booking"), a.activeRuns.begin("steps")
	may := a.mayEnd(p.Consumer("mailer"))
	for _, step := range []struct {
		ended func()
		may   bool
	}{{func() {}, false}, {booking, false}, {other, true}} {
		if step.ended(); may() != step.may {
			t.Errorf("mayEnd returns %v", may())
		}
	}
}
