package operate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
)

func TestPlain(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"of the library", errors.New("semel: the source is gone"), "the source is gone"},
		{"that names the consumer", fmt.Errorf("consumer billing: %w", errors.New(`semel: consumer "billing" cannot start: it has no source`)), `consumer "billing" cannot start: it has no source`},
		{"that names it bare", fmt.Errorf("consumer billing: %w", errors.New("semel: consumer billing: 2 handlers still run")), "consumer billing: 2 handlers still run"},
		{"that names it twice", errors.New("consumer billing: consumer billing: source orders: source orders: it is away"), "consumer billing: source orders: it is away"},
		{"that names its store twice", errors.New("store shop: semel: store shop: the disk is full"), "store shop: the disk is full"},
		{"that names another", errors.New("consumer bill: consumer billing: no table"), "consumer bill: consumer billing: no table"},
		{"that names none", fmt.Errorf("consumer billing: %w", errors.New("semel: closing the source: away")), "consumer billing: closing the source: away"},
		{"of another's words", errors.New("consumer billing: the handler said: semel: no"), "consumer billing: the handler said: semel: no"},
		{"with a word of the library", fmt.Errorf("store shop: marks nothing: %w", semel.ErrUnsupported), "store shop: marks nothing: not supported"},
		{"about a lane", fmt.Errorf("nothing is recorded of lane %q: %w", "payments/7", semel.ErrState), `nothing is recorded of lane "payments/7"`},
		{"about a row", fmt.Errorf("row 7 is PARKED: %w", semel.ErrState), "row 7 is PARKED: the row's state does not allow this"},
		{"alone", semel.ErrState, "the row's state does not allow this"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Plain(c.err.Error()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheNameOfAConsumerIsShownOnce(t *testing.T) {
	for text, want := range map[string]string{
		`its run has ended: semel: consumer "billing": no table`:                    "its run has ended: no table",
		"its run has ended: consumer billing: semel: consumer billing: it is stuck": "its run has ended: it is stuck",
		"consumer bill: no table": "consumer bill: no table",
	} {
		if got := WithoutConsumer("billing", text); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestReapedDue(t *testing.T) {
	none, one := int64(0), int64(1)
	for name, c := range map[string]struct {
		of   Reaped
		want bool
	}{
		"nothing":         {Reaped{Kept: 3, Days: &none}, false},
		"a marker":        {Reaped{Markers: 1}, true},
		"a body":          {Reaped{Bodies: 1}, true},
		"a day":           {Reaped{Days: &one}, true},
		"one who may not": {Reaped{Markers: 1, Stopped: "it is switched off"}, false},
		"one who waits":   {Reaped{Markers: 1, Elsewhere: true}, false},
	} {
		if got := c.of.Due(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
