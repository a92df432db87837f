package identity

import (
	"strconv"
)

// Derivation is an identity's own text of how it finds identities: the selectors of id and source as they are written, names
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
