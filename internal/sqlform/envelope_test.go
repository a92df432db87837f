package sqlform

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestAnEnvelopeKeepsTheReplayOfItsMessage(t *testing.T) {
	for name, r := range map[string]*semel.Replay{"none": nil, "without_effects": {ID: 7}, "of_a_generation": {ID: 8, Generation: 2, Effects: true}} {
		t.Run("law_14_"+name, func(t *testing.T) {
			data, err := Sealed(&semel.Message{Topic: "orders", Replayed: r})
			var m semel.Message
			if err == nil {
				err = Unseal(data, &m)
			}
			if err != nil || (m.Replayed == nil) != (r == nil) || r != nil && *m.Replayed != *r {
				t.Errorf("%+v became %+v, %v", r, m.Replayed, err)
			}
			if r == nil && strings.Contains(string(data), "replay") {
				t.Errorf("a message of none has %s", data)
			}
		})
	}
}
