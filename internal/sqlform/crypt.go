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

// Crypt encrypts what goes into tables, and decrypts what comes from there. The zero value
// has no cipher: it leaves all as it is, and refuses what is encrypted.
type Crypt struct {
	Cipher store.Cipher
	// Since, if not zero, is from when on nothing in plain text is worked on.
	Since time.Time
	// Keyed says that sums of fingerprints are written keyed; see Print. All of a process must write
	// one form, because SQL compares the sums of a row and of its marker. So it never changes.
	Keyed bool
}

// NewCrypt returns a Crypt that writes keyed sums if encryption is required by now. Processes of an
// earlier release, which cannot compare them, have ended by then.
func NewCrypt(cipher store.Cipher, since time.Time) Crypt {
	c := Crypt{Cipher: cipher, Since: since}
	c.Keyed = c.required()
	return c
}

// RefusesPlain says why a row with this envelope must not be worked on: it is in plain text, and
// encryption is required by now. Empty: it may be, or it is encrypted. The time that decides is
// this process's, because whoever can write the row can date it as they like.
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

// Lenient returns a Crypt that reads plain text whatever the time is, for rows that nobody works
// on any more.
func (c Crypt) Lenient() Crypt { return Crypt{Cipher: c.Cipher} }

var errNoCipher = errors.New("it is encrypted, and the store was opened without a key; give it as encryption of the store")

// about is what a text belongs to whose place is named by an id alone.
func about(kind string, id []byte) []byte { return append(append([]byte(kind), 0), id...) }

// Binding versions: which additional data the parts of an encrypted message have. No release
// writes byID any more. The version is not authenticated, and need not be: a part that was
// encrypted under one version cannot be decrypted under another.
const (
	byID       = 0 // the id of its identity
	byIdentity = 2 // consumer, source and id
)

// aboutMessage is the additional data of a part of the message of an identity.
func aboutMessage(binds int, kind string, of semel.Key) ([]byte, error) {
	switch binds {
	case byID:
		return about(kind, []byte(of.ID)), nil
	case byIdentity:
		data := append([]byte(kind), "/2\x00"...)
		for _, part := range []string{of.Consumer, of.Source, of.ID} {
			data = append(varint.AppendUvarint(data, uint64(len(part))), part...)
		}
		return data, nil
	default:
		return nil, fmt.Errorf("it is bound to its identity in form %d, which only a newer release knows", binds)
	}
}

// hidden is the envelope of a message that is encrypted with its body and key. Headers is a
// text, so that a release that knows nothing of it finds the envelope broken, and takes
// nothing that is encrypted for the message.
type hidden struct {
	Encrypted []byte `json:"encrypted"`
	Headers   string `json:"headers"`
	Binds     int    `json:"binds,omitempty"`
}

// hides begins the envelope of a message that is encrypted.
const hides = `{"encrypted":`

var errNoIdentity = errors.New("the message is not encrypted: its mark names no consumer, and it is bound to its whole identity; set Consumer and Source of the mark")

// message returns what a row keeps of the message of a mark: envelope, key and body, which are
// bound to the mark's identity if they are encrypted.
func (c Crypt) message(mark *store.Mark, m *semel.Message) (envelope string, key, body []byte, err error) {
	open, err := Sealed(m)
	if err != nil || c.Cipher == nil {
		return string(open), m.Key, m.Body, err
	}
	of := semel.Key{Consumer: mark.Consumer, Source: mark.Source, ID: string(mark.ID)}
	if of.Consumer == "" {
		return "", nil, nil, errNoIdentity
	}
	h := hidden{Headers: "encrypted", Binds: byIdentity}
	for _, part := range []struct {
		kind  string
		plain []byte
		to    *[]byte
	}{{"envelope", open, &h.Encrypted}, {"key", m.Key, &key}, {"body", m.Body, &body}} {
		if part.plain == nil {
			continue
		}
		if *part.to, err = c.encryptPart(h.Binds, part.kind, of, part.plain); err != nil {
			return "", nil, nil, fmt.Errorf("the message is not encrypted: %w", err)
		}
	}
	text, err := json.Marshal(h)
	return string(text), key, body, err
}

// Unseal puts into m what the row of this identity has of its message. m has the row's key and
// body; they are decrypted. hiding says that an error is of the encryption.
func (c Crypt) Unseal(of semel.Key, envelope []byte, m *semel.Message) (hiding bool, err error) {
	h, encrypted, err := hiddenIn(envelope)
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

// column is a text of a message that stands beside its envelope for people; nothing where
// that is encrypted.
func (c Crypt) column(s string) string {
	if c.Cipher != nil {
		return ""
	}
	return Plain(s)
}

// Body returns what the row of this identity keeps of a body that replaces another one. It is
// encrypted if the row's envelope is, and bound as the envelope is.
func (c Crypt) Body(of semel.Key, envelope, body []byte) ([]byte, error) {
	h, encrypted, err := hiddenIn(envelope)
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

// ShowBody undoes Body.
func (c Crypt) ShowBody(of semel.Key, envelope, kept []byte) ([]byte, error) {
	h, encrypted, err := hiddenIn(envelope)
	switch {
	case !encrypted || kept == nil:
		return kept, nil
	case err != nil:
		return nil, err
	}
	return c.decryptPart(h.Binds, "body", of, kept)
}

// hiddenIn reads an envelope that is encrypted; false: it is not.
func hiddenIn(envelope []byte) (h hidden, encrypted bool, err error) {
	if !bytes.HasPrefix(envelope, []byte(hides)) {
		return h, false, nil
	}
	err = json.Unmarshal(envelope, &h)
	return h, true, err
}

func (c Crypt) encryptPart(binds int, kind string, of semel.Key, plain []byte) ([]byte, error) {
	data, err := aboutMessage(binds, kind, of)
	if err != nil {
		return nil, err
	}
	return c.Cipher.Encrypt(plain, data)
}

func (c Crypt) decryptPart(binds int, kind string, of semel.Key, text []byte) ([]byte, error) {
	data, err := aboutMessage(binds, kind, of)
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

// The kinds of what is encrypted of results and of leased keys.
const (
	OfResult = "result"
	OfKey    = "result of a leased key"
)

// What an encrypted error text begins with says what it is bound to. The text is base64 behind
// it, because the columns are text.
const (
	errorOfIdentity = "semel encrypted/identity/1 "
	errorOfRow      = "semel encrypted/row/1 "
)

// ofError is the kind of what is encrypted of errors, which quote values of messages: a
// database puts the value into the text.
const ofError = "error"

// hiddenError is what is shown of an error text that cannot be decrypted.
const hiddenError = "encrypted"

// errorOf returns what the first row of a mark keeps of an error. Its number is not known yet.
func (c Crypt) errorOf(m *store.Mark, text string) string {
	data, err := aboutMessage(byIdentity, ofError, semel.Key{Consumer: m.Consumer, Source: m.Source, ID: string(m.ID)})
	if err != nil {
		return hiddenError
	}
	return c.hideError(errorOfIdentity, data, text)
}

// RowError returns what the row of this number keeps of an error.
func (c Crypt) RowError(row int64, text string) string {
	return c.hideError(errorOfRow, about(ofError, rowID(row)), text)
}

// hideError cuts an error text and encrypts it. An end that cannot keep its error text is
// still an end, so a failing cipher loses the text and nothing else.
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

// ShowError undoes errorOf and RowError; "encrypted" if it cannot. What is not encrypted stays
// as it is.
func (c Crypt) ShowError(of semel.Key, row int64, kept string) string {
	data, text := about(ofError, rowID(row)), ""
	if hidden, is := strings.CutPrefix(kept, errorOfRow); is {
		text = hidden
	} else if hidden, is := strings.CutPrefix(kept, errorOfIdentity); is {
		text = hidden
		var err error
		if data, err = aboutMessage(byIdentity, ofError, of); err != nil {
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
