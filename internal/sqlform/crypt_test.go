package sqlform

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/store"
)

func TestAReplacedBody(t *testing.T) {
	cipher, err := encryption.New(bytes.Repeat([]byte{1}, encryption.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	c := Crypt{Cipher: cipher}
	id, mark := semel.Key{Consumer: "billing", Source: "shop", ID: "a"}, &store.Mark{Consumer: "billing", Source: "shop", ID: []byte("a")}
	envelope, _, body, err := c.message(mark, &semel.Message{Body: []byte("first")})
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
		plain, _, _, err := Crypt{}.message(mark, &semel.Message{Body: []byte("first")})
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

func TestAMessageIsBoundToItsWholeIdentity(t *testing.T) {
	cipher, err := encryption.New(bytes.Repeat([]byte{1}, encryption.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	c, mark := Crypt{Cipher: cipher}, &store.Mark{Consumer: "billing", Source: "shop", ID: []byte("a")}
	own := semel.Key{Consumer: "billing", Source: "shop", ID: "a"}
	others := []semel.Key{{Consumer: "audit", Source: "shop", ID: "a"}, {Consumer: "billing", Source: "web", ID: "a"},
		{Consumer: "billing", Source: "shop", ID: "b"}, {Consumer: "billings", Source: "hop", ID: "a"}, {ID: "a"}}
	envelope, key, body, err := c.message(mark, &semel.Message{Key: []byte("key"), Body: []byte("body")})
	if err != nil {
		t.Fatal(err)
	}
	read := func(of semel.Key, envelope string, key, body []byte) (*semel.Message, bool, error) {
		m := &semel.Message{Key: key, Body: body}
		hiding, err := c.Unseal(of, []byte(envelope), m)
		return m, hiding, err
	}
	t.Run("P4_it_is_read_under_its_own", func(t *testing.T) {
		if m, _, err := read(own, envelope, key, body); err != nil || string(m.Body) != "body" || string(m.Key) != "key" {
			t.Errorf("%+v, %v", m, err)
		}
	})
	t.Run("P4_and_under_no_other", func(t *testing.T) {
		for _, of := range others {
			if m, hiding, err := read(of, envelope, key, body); !hiding || err == nil {
				t.Errorf("%+v reads %q, %v", of, m.Body, err)
			}
			if shown, err := c.ShowBody(of, []byte(envelope), body); err == nil {
				t.Errorf("%+v shows %q", of, shown)
			}
		}
	})
	t.Run("P4_nor_does_the_envelope_of_an_earlier_release_read_its_parts", func(t *testing.T) {
		earlier := strings.Replace(envelope, `,"binds":2`, "", 1)
		if earlier == envelope {
			t.Fatal("the situation did not occur")
		}
		if m, _, err := read(own, earlier, key, body); err == nil {
			t.Errorf("%q", m.Body)
		}
		if _, _, err := read(own, strings.Replace(envelope, `"binds":2`, `"binds":3`, 1), key, body); err == nil || !strings.Contains(err.Error(), "newer release") {
			t.Error(err)
		}
	})
	t.Run("P4_what_an_earlier_release_encrypted_is_read", func(t *testing.T) {
		sealed := func(kind, plain string) []byte {
			text, err := cipher.Encrypt([]byte(plain), append([]byte(kind+"\x00"), "a"...))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		open, err := Sealed(&semel.Message{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"encrypted": sealed("envelope", string(open)), "headers": "encrypted"})
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := read(own, string(text), sealed("key", "key"), sealed("body", "body"))
		if err != nil || string(m.Body) != "body" || string(m.Key) != "key" {
			t.Errorf("%+v, %v", m, err)
		}
		next, err := c.Body(own, text, []byte("second"))
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := read(own, string(text), nil, next); err != nil || string(m.Body) != "second" {
			t.Errorf("an edited body: %q, %v", m.Body, err)
		}
	})
	t.Run("P4_a_mark_that_names_no_consumer_is_refused", func(t *testing.T) {
		if _, _, _, err := c.message(&store.Mark{ID: []byte("a")}, &semel.Message{}); err == nil {
			t.Error("it is bound to nothing")
		}
	})
}
