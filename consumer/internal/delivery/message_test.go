package delivery

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
)

func TestAMessageOfATestIsAsAHandlerSeesIt(t *testing.T) {
	key := semel.Key{Consumer: "c", Source: "s", ID: "1"}
	m := semel.NewMessage(key, []byte("{}"), semel.Header{Name: "ce-type", Value: []byte("order")})
	t.Run("its keys are those of a delivered message", func(t *testing.T) {
		delivered := &semel.Message{Headers: semel.Headers{{Name: "ce-id", Value: []byte("1")}, {Name: "ce-source", Value: []byte("s")}, {Name: "ce-specversion", Value: []byte("1.0")}, {Name: "ce-type", Value: []byte("order")}}}
		p := Read(&Rules{Guard: guard.Guard{Consumer: "c"}, Identity: identity.CloudEvents(), Fingerprint: identity.FingerprintNone(), MaxBody: 1 << 20}, &source.Delivery{Message: delivered, Before: source.Unknown})
		if p.Message.IdempotencyKey("x") != m.IdempotencyKey("x") || p.Message.OutputID("x", "y") != m.OutputID("x", "y") {
			t.Error("they differ")
		}
	})
	t.Run("identity, attributes and attempt are set", func(t *testing.T) {
		source, id, err := identity.CloudEvents().Identify(m)
		if err != nil || source != "s" || id != "1" || m.Type() != "order" || m.Attempt != 1 || m.Identity != key || m.Origin.Offset != -1 {
			t.Errorf("%+v, identified as %s of %s: %v", m, id, source, err)
		}
	})
	t.Run("without an id it panics and says what to do", func(t *testing.T) {
		defer func() {
			if text, _ := recover().(string); !strings.Contains(text, "NewMessage") {
				t.Errorf("it says %q", text)
			}
		}()
		semel.NewMessage(semel.Key{Consumer: "c"}, nil)
	})
}
