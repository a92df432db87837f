package identity

import (
	"strconv"
)

// Derivation returns a text that describes how s finds identities: the selectors of id and source, with header
// names in lower case.
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
