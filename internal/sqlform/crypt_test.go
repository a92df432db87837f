package sqlform

import (
	"bytes"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/encryption"
)

func TestABodyThatTakesThePlaceOfAnother(t *testing.T) {
	cipher, err := encryption.New(bytes.Repeat([]byte{1}, encryption.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	id, c := []byte("a"), Crypt{cipher}
	envelope, _, body, err := c.message(id, &semel.Message{Body: []byte("first")})
	if err != nil || bytes.Contains(body, []byte("first")) {
		t.Fatalf("%q, %v", body, err)
	}
	t.Run("P4_it_is_encrypted_as_that_was", func(t *testing.T) {
		next, err := c.Body(id, []byte(envelope), []byte("second"))
		if err != nil || bytes.Contains(next, []byte("second")) {
			t.Fatalf("%q, %v", next, err)
		}
		m := &semel.Message{Body: next}
		if _, err := c.Unseal(id, []byte(envelope), m); err != nil || string(m.Body) != "second" {
			t.Errorf("%q, %v", m.Body, err)
		}
		if shown, err := c.ShowBody(id, []byte(envelope), body); err != nil || string(shown) != "first" {
			t.Errorf("%q, %v", shown, err)
		}
		if _, err := (Crypt{}).Body(id, []byte(envelope), []byte("second")); err == nil {
			t.Error("it is kept in the clear beside an envelope that says it is encrypted")
		}
	})
	t.Run("P4_and_is_not_where_that_was_not", func(t *testing.T) {
		plain, _, _, err := Crypt{}.message(id, &semel.Message{Body: []byte("first")})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := c.Body(id, []byte(plain), []byte("second"))
		if err != nil || string(kept) != "second" {
			t.Errorf("%q, %v", kept, err)
		}
		if shown, err := c.ShowBody(id, []byte(plain), kept); err != nil || string(shown) != "second" {
			t.Errorf("%q, %v", shown, err)
		}
	})
}
