package sqlform

import (
	"bytes"
	"encoding/base64"
	varint "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Crypt encrypts values for the tables and decrypts values from the tables. The zero Crypt has no cipher. Without a
// cipher, plain text is returned unchanged, and encrypted values give an error.
type Crypt struct {
	Cipher store.Cipher
	// Since, if not zero, is the time from which rows in plain text are not processed.
	Since time.Time
	// Keyed means that the hashes (sums) of fingerprints are written with a key; see Print. A process must
	// never change Keyed, because SQL compares the sum of a row with the sum of its marker.
	Keyed bool
}

// NewCrypt returns a Crypt. The parameter since is the time from which encryption is required. If this time is in the
// past, the Crypt writes keyed sums. Earlier releases cannot compare keyed sums, so all processes of earlier releases
// must have ended before this time.
func NewCrypt(cipher store.Cipher, since time.Time) Crypt {
	c := Crypt{Cipher: cipher, Since: since}
	c.Keyed = c.required()
	return c
}

// RefusesPlain returns why a row with the given envelope must not be processed, or "" if the row may be processed. A
// row must not be processed if it is in plain text although encryption is required now. The clock of the current
// process decides, because a person who can write the row could give the row any date.
func (c Crypt) RefusesPlain(envelope []byte) string {
	if !c.required() || bytes.HasPrefix(envelope, []byte(hides)) {
		return ""
	}
	return "it is in plain text, and the store requires encryption since " + c.Since.UTC().Format(time.RFC3339) +
		"; discard it if you do not know who wrote it, or set required_since to a later time and retry it"
}

func (c Crypt) required() bool {
	return c.Cipher != nil && !c.Since.IsZero() && !time.Now().Before(c.Since)
}

// Lenient returns a Crypt that always accepts plain text. Lenient is for rows that are no longer processed.
func (c Crypt) Lenient() Crypt { return Crypt{Cipher: c.Cipher} }

var errNoCipher = errors.New("it is encrypted, and the store was opened without a key; configure the encryption of the store")

// additionalData returns the additional authenticated data of a value that belongs to the given id.
func additionalData(kind string, id []byte) []byte { return append(append([]byte(kind), 0), id...) }

// Binding versions define the additional data of the parts of an encrypted message. No release writes the version byID
// any more. The version itself need not be authenticated, because a part that was encrypted under one version cannot be
// decrypted under another version.
const (
	byID       = 0 // the id of the message's identity
	byIdentity = 2 // consumer, source and id
)

// messageAdditionalData returns the additional data of a part of the message with the given identity.
func messageAdditionalData(binds int, kind string, of semel.Key) ([]byte, error) {
	switch binds {
	case byID:
		return additionalData(kind, []byte(of.ID)), nil
	case byIdentity:
		data := append([]byte(kind), "/2\x00"...)
		for _, part := range []string{of.Consumer, of.Source, of.ID} {
			data = append(varint.AppendUvarint(data, uint64(len(part))), part...)
		}
		return data, nil
	default:
		return nil, fmt.Errorf("it is bound to its identity by version %d, which only a newer release supports", binds)
	}
}

// encryptedEnvelope is the envelope of an encrypted message. Key and body are encrypted separately. Headers is a string
// instead of a list, so that a release without encryption rejects the envelope and does not process the encrypted bytes
// as a message.
type encryptedEnvelope struct {
	Encrypted []byte `json:"encrypted"`
	Headers   string `json:"headers"`
	Binds     int    `json:"binds,omitempty"`
}

// hides is the start of the envelope of an encrypted message.
const hides = `{"encrypted":`

var errNoIdentity = errors.New("the message cannot be encrypted, because its mark has no consumer and encryption is bound to the whole identity; set Consumer and Source of the mark")

// message returns the envelope, key and body that the row of a message stores. With a cipher, envelope, key and body
// are encrypted and bound to the identity of the message.
func (c Crypt) message(mark *store.Mark, m *semel.Message) (envelope string, key, body []byte, err error) {
	open, err := Sealed(m)
	if err != nil || c.Cipher == nil {
		return string(open), m.Key, m.Body, err
	}
	of := semel.Key{Consumer: mark.Consumer, Source: mark.Source, ID: string(mark.ID)}
	if of.Consumer == "" {
		return "", nil, nil, errNoIdentity
	}
	h := encryptedEnvelope{Headers: "encrypted", Binds: byIdentity}
	for _, part := range []struct {
		kind  string
		plain []byte
		to    *[]byte
	}{{"envelope", open, &h.Encrypted}, {"key", m.Key, &key}, {"body", m.Body, &body}} {
		if part.plain == nil {
			continue
		}
		if *part.to, err = c.encryptPart(h.Binds, part.kind, of, part.plain); err != nil {
			return "", nil, nil, fmt.Errorf("the message cannot be encrypted: %w", err)
		}
	}
	text, err := json.Marshal(h)
	return string(text), key, body, err
}

// Unseal restores m from the row with the given identity. The message m must have the key and body of the row, which
// Unseal decrypts. The result hiding is true if the decryption failed.
func (c Crypt) Unseal(of semel.Key, envelope []byte, m *semel.Message) (hiding bool, err error) {
	h, encrypted, err := decodeEnvelope(envelope)
	if !encrypted {
		return false, Unseal(envelope, m)
	}
	if err != nil {
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
		if *part.to, err = c.decryptPart(h.Binds, part.kind, of, part.text); err != nil {
			return true, err
		}
	}
	return false, Unseal(open, m)
}

// plainColumn returns the value of a column that repeats a text of the message unencrypted. If messages are encrypted,
// plainColumn returns an empty value.
func (c Crypt) plainColumn(s string) string {
	if c.Cipher != nil {
		return ""
	}
	return Plain(s)
}

// Body returns the bytes that a row stores for a new body. If the envelope of the row is encrypted, the body is
// encrypted with the same binding.
func (c Crypt) Body(of semel.Key, envelope, body []byte) ([]byte, error) {
	h, encrypted, err := decodeEnvelope(envelope)
	switch {
	case !encrypted || body == nil:
		return body, nil
	case err != nil:
		return nil, err
	case c.Cipher == nil:
		return nil, errNoCipher
	}
	return c.encryptPart(h.Binds, "body", of, body)
}

// ShowBody is the inverse of Body.
func (c Crypt) ShowBody(of semel.Key, envelope, kept []byte) ([]byte, error) {
	h, encrypted, err := decodeEnvelope(envelope)
	switch {
	case !encrypted || kept == nil:
		return kept, nil
	case err != nil:
		return nil, err
	}
	return c.decryptPart(h.Binds, "body", of, kept)
}

// decodeEnvelope reads an encrypted envelope. If the envelope is in plain text, the result encrypted is false.
func decodeEnvelope(envelope []byte) (h encryptedEnvelope, encrypted bool, err error) {
	if !bytes.HasPrefix(envelope, []byte(hides)) {
		return h, false, nil
	}
	err = json.Unmarshal(envelope, &h)
	return h, true, err
}

func (c Crypt) encryptPart(binds int, kind string, of semel.Key, plain []byte) ([]byte, error) {
	data, err := messageAdditionalData(binds, kind, of)
	if err != nil {
		return nil, err
	}
	return c.Cipher.Encrypt(plain, data)
}

func (c Crypt) decryptPart(binds int, kind string, of semel.Key, text []byte) ([]byte, error) {
	data, err := messageAdditionalData(binds, kind, of)
	if err != nil {
		return nil, err
	}
	if c.Cipher == nil {
		return nil, errNoCipher
	}
	return c.Cipher.Decrypt(text, data)
}

func (c Crypt) decrypt(kind string, id, text []byte) ([]byte, error) {
	if c.Cipher == nil {
		return nil, errNoCipher
	}
	return c.Cipher.Decrypt(text, additionalData(kind, id))
}

// Size returns the length of a body. The parameter kept is the number of bytes that the store uses for the body.
func (c Crypt) Size(envelope []byte, kept int) int {
	if c.Cipher != nil && kept > 0 && bytes.HasPrefix(envelope, []byte(hides)) {
		return kept - c.Cipher.Overhead()
	}
	return kept
}

// encryptedPrefix is the prefix of encrypted values outside of an envelope. The prefix contains random bytes, so
// that no other value begins with it.
var encryptedPrefix = []byte("\x00semel encrypted\xf5\x9b\x1e\x07")

// Hide encrypts a value that belongs to an id and is outside of an envelope. If the value is nil, Hide
// returns nil.
func (c Crypt) Hide(kind string, id, plain []byte) ([]byte, error) {
	if c.Cipher == nil || plain == nil {
		return plain, nil
	}
	text, err := c.Cipher.Encrypt(plain, additionalData(kind, id))
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be encrypted: %w", kind, err)
	}
	return append(bytes.Clone(encryptedPrefix), text...), nil
}

// Show is the inverse of Hide. If the value is in plain text, Show returns the value unchanged.
func (c Crypt) Show(kind string, id, text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, encryptedPrefix) {
		return text, nil
	}
	plain, err := c.decrypt(kind, id, text[len(encryptedPrefix):])
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be read: %w", kind, err)
	}
	return plain, nil
}

// The kinds of encrypted results.
const (
	OfResult = "result"
	OfKey    = "result of a leased key"
)

// The prefixes of encrypted error texts say to which object (an identity or a row) the text is bound. The text after
// the prefix is base64, because the columns have type text.
const (
	errorOfIdentity = "semel encrypted/identity/1 "
	errorOfRow      = "semel encrypted/row/1 "
)

// ofError is the kind of encrypted error texts. Error texts are encrypted because a database quotes values of
// a message in its errors.
const ofError = "error"

// hiddenError replaces an error text that cannot be encrypted or decrypted.
const hiddenError = "encrypted"

// errorOf returns the text that is stored for an error in a new row, whose number is not known yet.
func (c Crypt) errorOf(m *store.Mark, text string) string {
	data, err := messageAdditionalData(byIdentity, ofError, semel.Key{Consumer: m.Consumer, Source: m.Source, ID: string(m.ID)})
	if err != nil {
		return hiddenError
	}
	return c.hideError(errorOfIdentity, data, text)
}

// RowError returns the text that is stored for an error in the row with the given number.
func (c Crypt) RowError(row int64, text string) string {
	return c.hideError(errorOfRow, additionalData(ofError, rowID(row)), text)
}

// hideError truncates an error text and encrypts it. If encryption fails, only the error text is lost, and
// the row can still end.
func (c Crypt) hideError(begins string, data []byte, text string) string {
	text = ErrorText(text)
	if c.Cipher == nil || text == "" {
		return text
	}
	hidden, err := c.Cipher.Encrypt([]byte(text), data)
	if err != nil {
		return hiddenError
	}
	return begins + base64.StdEncoding.EncodeToString(hidden)
}

// ShowError is the inverse of errorOf and RowError. If decryption fails, ShowError returns "encrypted". Plain
// text is returned unchanged.
func (c Crypt) ShowError(of semel.Key, row int64, kept string) string {
	data, text := additionalData(ofError, rowID(row)), ""
	if hidden, is := strings.CutPrefix(kept, errorOfRow); is {
		text = hidden
	} else if hidden, is := strings.CutPrefix(kept, errorOfIdentity); is {
		text = hidden
		var err error
		if data, err = messageAdditionalData(byIdentity, ofError, of); err != nil {
			return hiddenError
		}
	} else {
		return kept
	}
	hidden, err := base64.StdEncoding.DecodeString(text)
	if err != nil || c.Cipher == nil {
		return hiddenError
	}
	plain, err := c.Cipher.Decrypt(hidden, data)
	if err != nil {
		return hiddenError
	}
	return string(plain)
}
