package surrogate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
)

func TestSurrogatesNameDeliveriesWithoutIdentity(t *testing.T) {
	at := func(topic string, partition int32, offset int64, body string) *semel.Message {
		return &semel.Message{Topic: topic, Body: []byte(body), Origin: semel.Origin{Partition: partition, Offset: offset}}
	}
	all := []*semel.Message{
		at("t", 0, 1, "x"), at("t", 0, 2, "x"), at("t", 1, 1, "x"), at("u", 0, 1, "x"), at("t", -1, -1, "x"), at("t", -1, -1, "y"),
		{Topic: "t", Origin: semel.Origin{Partition: -1, Offset: -1, BrokerID: "b"}}, {Topic: "t", Body: []byte("x"), Headers: semel.Headers{{Name: "h", Value: []byte("v")}}, Origin: semel.Origin{Offset: -1}},
		at(strings.Repeat("t", semel.MaxID), 0, 1, "x"),
	}
	t.Run("case_8_different_deliveries_have_different_surrogates", func(t *testing.T) {
		var seen []string
		for _, m := range all {
			s := Of(m)
			if slices.Contains(seen, s) || len(s) == 0 || len(s) > semel.MaxID {
				t.Errorf("%q of %+v", s, m)
			}
			seen = append(seen, s)
			if again := Of(m); again != s {
				t.Errorf("%q, then %q", s, again)
			}
		}
	})
	t.Run("case_8_another_message_at_the_same_coordinates_is_no_copy", func(t *testing.T) {
		if Of(at("t", 0, 1, "x")) == Of(at("t", 0, 1, "y")) {
			t.Error("a recreated topic's message would be counted as a copy and be lost")
		}
	})
	t.Run("case_8_a_redelivery_keeps_its_surrogate", func(t *testing.T) {
		first, again := at("t", 0, 1, "x"), at("t", 0, 1, "x")
		again.Headers = semel.Headers{{Name: "x-anything", Value: []byte("2")}}
		if Of(first) != Of(again) {
			t.Error("messages with other coordinates have the same name")
		}
		first, again = at("t", -1, -1, "x"), at("t", -1, -1, "x")
		again.Headers = semel.Headers{{Name: "X-Delivery-Count", Value: []byte("2")}}
		if Of(first) != Of(again) {
			t.Error("another delivery count gives another name")
		}
	})
	t.Run("no message can claim a surrogate", func(t *testing.T) {
		m := all[0]
		_, _, err := identity.Func(func(*semel.Message) (string, string, error) { return Source, Of(m), nil }).Identify(m)
		if refused := (*identity.Error)(nil); !errors.As(err, &refused) || refused.Reason != semel.ReasonBadIdentity {
			t.Errorf("%v, want %s", err, semel.ReasonBadIdentity)
		}
	})
}
