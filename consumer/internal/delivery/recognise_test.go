package delivery

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// readAs returns the machine's item for a message.
func readAs(c Rules, m *semel.Message) machine.Item {
	return Read(&c, &source.Delivery{Message: m, Before: source.Unknown}).Item
}

func TestTheItemOfADelivery(t *testing.T) {
	c := Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identity.By("header:id"), Fingerprint: identity.FingerprintBody(), MaxBody: 64 << 10}
	named := func(id, key, body string) *semel.Message {
		return &semel.Message{Key: []byte(key), Headers: semel.Headers{{Name: "id", Value: []byte(id)}}, Body: []byte(body)}
	}
	t.Run("law_11_a_body_that_is_cut_counts_with_all_that_its_delivery_holds", func(t *testing.T) {
		long := readAs(c, named("1", "k", `"`+strings.Repeat("x", 10<<20)+`"`))
		if long.Refused == nil || long.Refused.Reason != semel.ReasonTooLarge || long.Size < 10<<20 {
			t.Errorf("the refusal is %+v, with %d bytes", long.Refused, long.Size)
		}
	})
	t.Run("what_has_one_key_takes_one_route_and_without_a_key_copies_do", func(t *testing.T) {
		if readAs(c, named("1", "k", "1")).Route != readAs(c, named("2", "k", "2")).Route {
			t.Error("two messages of one key have two routes, so that both may run at once")
		}
		keyless := func(body string) uint64 { m := named("1", "", body); m.Key = nil; return readAs(c, m).Route }
		if keyless("1") != keyless("2") {
			t.Error("two copies of one message have two routes")
		}
	})
}
