package identity

import (
	"strconv"
)

// Derived is an optional ability of an Identity: to tell how it finds identities. A store
// that can keeps that of a consumer (admin.Derivations), and a start with another one
// is refused. Without it nothing is kept and nothing refused.
type Derived interface {
	// Derivation is the same text as long as the same messages have the same identities,
	// and another as soon as one message has another. It is not empty.
	Derivation() string
}

// Derivation implements Derived: the selectors of id and source as they are written, names
// of headers in small letters.
func (s *Selected) Derivation() string {
	text := []byte("id")
	for i := range s.ids {
		text = strconv.AppendQuote(append(text, ' '), s.ids[i].Canonical())
	}
	if s.hasSource {
		text = strconv.AppendQuote(append(text, " source "...), s.source.Canonical())
	}
	return string(text)
}
