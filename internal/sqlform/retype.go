package sqlform

import (
	"encoding/json"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/structured"
)

// Retyped is what a row stores about the type of its message after an edit has changed the type.
type Retyped struct {
	// Was is the type before the edit.
	Was string
	// Envelope and Column are the new values of the columns envelope and type.
	Envelope, Column string
}

// Retype returns the columns of a row whose message gets another type. If the row's envelope is encrypted, Retype
// encrypts the new envelope with the same binding.
func (c Crypt) Retype(of semel.Key, stored []byte, kind string) (r Retyped, err error) {
	h, encrypted, err := decodeEnvelope(stored)
	open := stored
	if encrypted && err == nil {
		open, err = c.decryptPart(h.Binds, "envelope", of, h.Encrypted)
	}
	var m semel.Message
	if err == nil {
		err = Unseal(open, &m)
	}
	if err != nil {
		return r, err
	}
	r.Was, r.Column = structured.Type(&m), Plain(kind)
	m.Attributes.Type = kind
	if open, err = Sealed(&m); err != nil || !encrypted {
		r.Envelope = string(open)
		return r, err
	}
	if h.Encrypted, err = c.encryptPart(h.Binds, "envelope", of, open); err != nil {
		return r, err
	}
	text, err := json.Marshal(h)
	r.Envelope = string(text)
	return r, err
}
