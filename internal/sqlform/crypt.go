package sqlform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// Crypt encrypts what goes into tables, and decrypts what comes from there. The zero value
// has no cipher: it leaves all as it is, and refuses what is encrypted.
type Crypt struct{ Cipher contract.Cipher }

var errNoCipher = errors.New("it is encrypted, and the store was opened without a key; give it as encryption of the store")

// about is what a text belongs to.
func about(kind string, id []byte) []byte { return append(append([]byte(kind), 0), id...) }

// hidden is the envelope of a message that is encrypted with its body and key. Headers is a
// text, so that a release that knows nothing of it finds the envelope broken, and takes
// nothing that is encrypted for the message.
type hidden struct {
	Encrypted []byte `json:"encrypted"`
	Headers   string `json:"headers"`
}

// hides begins the envelope of a message that is encrypted.
const hides = `{"encrypted":`

// message is what a row keeps of a message with this id.
func (c Crypt) message(id []byte, m *semel.Message) (envelope string, key, body []byte, err error) {
	open, err := Sealed(m)
	if err != nil || c.Cipher == nil {
		return string(open), m.Key, m.Body, err
	}
	var h hidden
	for _, part := range []struct {
		kind  string
		plain []byte
		to    *[]byte
	}{{"envelope", open, &h.Encrypted}, {"key", m.Key, &key}, {"body", m.Body, &body}} {
		if part.plain == nil {
			continue
		}
		if *part.to, err = c.Cipher.Encrypt(part.plain, about(part.kind, id)); err != nil {
			return "", nil, nil, fmt.Errorf("the message is not encrypted: %w", err)
		}
	}
	h.Headers = "encrypted"
	text, err := json.Marshal(h)
	return string(text), key, body, err
}

// Unseal puts into m what a row has of a message with this id: beside the envelope its key and
// body. hiding says that an error is of the encryption.
func (c Crypt) Unseal(id, envelope []byte, m *semel.Message) (hiding bool, err error) {
	if !bytes.HasPrefix(envelope, []byte(hides)) {
		return false, Unseal(envelope, m)
	}
	var h hidden
	if err := json.Unmarshal(envelope, &h); err != nil {
		return false, err
	}
	open := envelope
	for _, part := range []struct {
		kind string
		text []byte
		to   *[]byte
	}{{"envelope", h.Encrypted, &open}, {"key", m.Key, &m.Key}, {"body", m.Body, &m.Body}} {
		if part.text == nil {
			continue
		}
		if *part.to, err = c.decrypt(part.kind, id, part.text); err != nil {
			return true, err
		}
	}
	return false, Unseal(open, m)
}

// column is a text of a message that stands beside its envelope for people; nothing where
// that is encrypted.
func (c Crypt) column(s string) string {
	if c.Cipher != nil {
		return ""
	}
	return Plain(s)
}

// Body is what is kept of a body that takes the place of another one: as that is encrypted
// with its envelope, or is not.
func (c Crypt) Body(id, envelope, body []byte) ([]byte, error) {
	switch {
	case !bytes.HasPrefix(envelope, []byte(hides)) || body == nil:
		return body, nil
	case c.Cipher == nil:
		return nil, errNoCipher
	}
	return c.Cipher.Encrypt(body, about("body", id))
}

// ShowBody undoes Body.
func (c Crypt) ShowBody(id, envelope, kept []byte) ([]byte, error) {
	if !bytes.HasPrefix(envelope, []byte(hides)) || kept == nil {
		return kept, nil
	}
	return c.decrypt("body", id, kept)
}

func (c Crypt) decrypt(kind string, id, text []byte) ([]byte, error) {
	if c.Cipher == nil {
		return nil, errNoCipher
	}
	return c.Cipher.Decrypt(text, about(kind, id))
}

// Size is how long a body was that is kept with so many bytes.
func (c Crypt) Size(envelope []byte, kept int) int {
	if c.Cipher != nil && kept > 0 && bytes.HasPrefix(envelope, []byte(hides)) {
		return kept - c.Cipher.Overhead()
	}
	return kept
}

// marked begins what is encrypted and has no envelope. Nothing else begins so: that it does
// by chance, nobody will see.
var marked = []byte("\x00semel encrypted\xf5\x9b\x1e\x07")

// Hide encrypts what belongs to an id and has no envelope, unless it is nil.
func (c Crypt) Hide(kind string, id, plain []byte) ([]byte, error) {
	if c.Cipher == nil || plain == nil {
		return plain, nil
	}
	text, err := c.Cipher.Encrypt(plain, about(kind, id))
	if err != nil {
		return nil, fmt.Errorf("the %s is not encrypted: %w", kind, err)
	}
	return append(bytes.Clone(marked), text...), nil
}

// Show undoes Hide. What is not encrypted is as it is.
func (c Crypt) Show(kind string, id, text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, marked) {
		return text, nil
	}
	plain, err := c.decrypt(kind, id, text[len(marked):])
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}
	return plain, nil
}
