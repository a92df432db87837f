package sqlform

import (
	"encoding/base64"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
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
