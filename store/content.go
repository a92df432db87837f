package store

import "github.com/semel-go/semel"

// Other reports whether the given fingerprint belongs to other content than the content of m. If the marker of m's
// identity has such a fingerprint, the verdict for m is Conflict.
func (m *Mark) Other(content semel.Fingerprint) bool {
	if m.Strict && (content.Version == 0 || content.Version != m.Fingerprint.Version) {
		return true
	}
	return m.Fingerprint.Conflicts(content)
}
