package sqlform

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/store"
)

func TestAReplacedType(t *testing.T) {
	cipher, err := encryption.New(bytes.Repeat([]byte{1}, encryption.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	id, mark := semel.Key{Consumer: "billing", Source: "shop", ID: "a"}, &store.Mark{Consumer: "billing", Source: "shop", ID: []byte("a")}
	first := &semel.Message{Topic: "payments", Body: []byte("first"), Attributes: semel.Attributes{Type: "piad", Subject: "7"}, Replayed: &semel.Replay{ID: 3}}
	for name, c := range map[string]Crypt{"of a row in plain text": {}, "P4_of_an_encrypted_row": {Cipher: cipher}} {
		t.Run(name, func(t *testing.T) {
			envelope, _, body, err := c.message(mark, first)
			if err != nil {
				t.Fatal(err)
			}
			next, err := c.Retype(id, []byte(envelope), "paid")
			if err != nil || next.Was != "piad" || next.Column != "paid" {
				t.Fatalf("%+v, %v", next, err)
			}
			if c.Cipher != nil && strings.Contains(next.Envelope, "paid") {
				t.Errorf("the new envelope is in plain text: %s", next.Envelope)
			}
			m := &semel.Message{Body: body}
			if _, err := c.Unseal(id, []byte(next.Envelope), m); err != nil || m.Type() != "paid" || m.Subject() != "7" || m.Topic != "payments" || m.Replayed == nil || string(m.Body) != "first" {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
	t.Run("P4_without_the_key_nothing_is_replaced", func(t *testing.T) {
		envelope, _, _, err := Crypt{Cipher: cipher}.message(mark, first)
		if err != nil {
			t.Fatal(err)
		}
		if next, err := (Crypt{}).Retype(id, []byte(envelope), "paid"); err == nil {
			t.Errorf("%+v", next)
		}
	})
}
