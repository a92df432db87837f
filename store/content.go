package store

import "github.com/semel-go/semel"

// Other reports whether a message with the fingerprint content has other content than m. If the marker of m's
// identity has this fingerprint, the verdict for m is Conflict.
func (m *Mark) Other(content semel.Fingerprint) bool {
	if m.Strict && (content.Version == 0 || content.Version != m.Fingerprint.Version) {
		return true
	}
	return m.Fingerprint.Conflicts(content)
}
