package store

import "github.com/semel-go/semel"

// PreviousMark is the previous identity of a message, formed by the previous rule (derivation). The store writes a
// marker for the previous identity together with the marker of the Mark, with the same fingerprint and outcome, and
// removes the two markers together. The answer for the Mark is Fresh only if neither identity had a marker.
//
//   - If a marker of the Mark's own identity exists, the answer follows from that marker. The marker that the batch
//     wrote for the previous identity is removed.
//   - If only a marker of the previous identity exists, the answer follows from that marker: Seen, Newer, Busy, or
//     Conflict with Known for rows of either identity. The marker that the batch wrote for the Mark's own identity is
//     removed.
//
// A Repeat is counted in the row of the identity whose marker decides. If two marks of a batch have an identity in
// common, and the batch itself wrote the marker for the first mark, the answer for the second mark is Busy.
type PreviousMark struct {
	Scope int64
	// ID is at most semel.MaxID bytes.
	ID []byte
	// Strict has the meaning of Mark.Strict, for the previous identity.
	Strict bool
}

// Other reports whether a message with the fingerprint content has other content than m. If the marker of m's identity
// has other content, the store's answer for m is Conflict.
func (m *Mark) Other(content semel.Fingerprint) bool {
	if m.Strict && (content.Version == 0 || content.Version != m.Fingerprint.Version) {
		return true
	}
	return m.Fingerprint.Conflicts(content)
}
