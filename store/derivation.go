package store

import "github.com/semel-go/semel"

// PreviousMark is the identity of a message under the previous derivation. PreviousMark is marked together with
// its Mark, with the same fingerprint and outcome, and is trimmed with it. The Mark is Fresh only if both
// identities are.
//
//   - If a marker of the Mark's own identity exists, its verdict counts, and the marker that the batch wrote
//     for the previous identity is removed.
//   - Otherwise, if a marker of the previous identity exists, its verdict counts: Seen, Newer, Busy, or
//     Conflict with Known for rows of either identity. The marker that the batch wrote for the Mark's own
//     identity is removed.
//
// A Repeat counts on the row of the identity whose verdict counts. If two marks of a batch have an identity in
// common that the batch itself marked for the first of them, the second is Busy.
type PreviousMark struct {
	Scope int64
	// ID is at most semel.MaxID bytes.
	ID []byte
	// Strict is Mark.Strict for the previous identity.
	Strict bool
}

// Other reports whether a marker with the fingerprint content was written for a message with
// different content than m, so that the store returns the verdict Conflict for m.
func (m *Mark) Other(content semel.Fingerprint) bool {
	if m.Strict && (content.Version == 0 || content.Version != m.Fingerprint.Version) {
		return true
	}
	return m.Fingerprint.Conflicts(content)
}
