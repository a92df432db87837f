package delivery

import (
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reading"
)

func TestASourceGetsBackItsDelivery(t *testing.T) {
	c := Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone(), MaxBody: 1 << 20}
	want := deliveriesOf("{}")[0]
	want.Before = 7
	var p Delivery
	d := want
	p.read(&c, reader{room: new(reading.Room)}, &d)
	seen := p.Message
	seen.Identity, seen.Strict = want.Message.Identity, want.Message.Strict
	if !reflect.DeepEqual(seen, *want.Message) {
		t.Errorf("the handler sees %+v, delivered was %+v", seen, *want.Message)
	}
	p.Message.Topic, p.Message.Identity = "a handler writes into its message", semel.Key{ID: "another"}
	if got := p.Delivered(); !reflect.DeepEqual(got, want) || got.Message != want.Message {
		t.Errorf("%+v, delivered as %+v", got, want)
	}
	if got, want := p.Key(c.Consumer), (semel.Key{Consumer: "billing", ID: "0"}); got != want {
		t.Errorf("it is called %v, want %v", got, want)
	}
}

// unsure is a fingerprinter whose result must not be used, because the messages have no usable identity.
type unsure struct{}

func (unsure) Fingerprint(*semel.Message) (semel.Fingerprint, error) {
	return semel.Fingerprint{Version: 9, Sum: [16]byte{1}}, errors.New("of which part?")
}
func (unsure) Validate() error { return nil }

// The fingerprint of a message without a usable identity is never compared.
func TestARefusedMessageHasNoFingerprint(t *testing.T) {
	c := Rules{Guard: guard.Guard{Consumer: "billing"}, Identity: identity.By("header:id"), Fingerprint: unsure{}, MaxBody: 1 << 20}
	var p Delivery
	d := deliveriesOf("{}")[0]
	p.read(&c, reader{room: new(reading.Room)}, &d)
	if p.Item.Refused == nil || p.Item.Refused.Reason != semel.ReasonMalformed || p.Item.Print != (semel.Fingerprint{}) {
		t.Errorf("refused: %+v, fingerprint %v", p.Item.Refused, p.Item.Print)
	}
}

// The cost of a message is mostly the memory that it uses, and this memory limits the number of messages that can wait.
// A new field in Delivery must be worth its memory.
func TestADeliveryHoldsLittle(t *testing.T) {
	const most = 568 // with its type; the allocator rounds this to 576
	if n := unsafe.Sizeof(Delivery{}); n > most {
		t.Errorf("a delivery on its way takes %d bytes, %d before", n, most)
	}
}
