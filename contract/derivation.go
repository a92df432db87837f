package contract

import (
	"context"
	"time"

	"github.com/semel-go/semel"
)

// Derivation is how the identities of a consumer's messages are found, or were before:
// the selectors of id and source, as a text.
type Derivation struct {
	Consumer string
	// Generation is that of its scopes, which keeps its identities apart from those of
	// others: 0 of the first, and counted from there.
	Generation int64
	// Text is what the identity tells of itself, 1 to MaxDerivation bytes.
	Text string
	// Former is the generation of the derivation that was named as its former one when
	// it was recorded, NoFormer if none was.
	Former int64
	// First is when it was recorded, by the store's clock.
	First time.Time
	// Retired says that a person has said of it that none of its messages comes any more:
	// nobody needs to name it as former.
	Retired bool
}

// MaxDerivation is the most bytes of a derivation's text.
const MaxDerivation = 1024

// NoFormer is Derivation.Former where there is none.
const NoFormer = -1

// Derivations is an optional ability of a TxStore: to remember how identities are found,
// and to mark under a former one, too (Mark.Former), in Begin and in what else of TxMarker
// and TxReceiver it has. Without it a consumer starts unasked, and has no former identity.
type Derivations interface {
	// Derivations returns those of a consumer by generation, or with "" those of all,
	// by consumer and generation.
	Derivations(ctx context.Context, consumer string) ([]Derivation, error)
	// AddDerivation records one unless its consumer has its generation or its text
	// already, and reports whether it did. First is the store's. semel.ErrUnsupported: the
	// store keeps markers of one generation only.
	AddDerivation(ctx context.Context, d Derivation) (added bool, err error)
	// RetireDerivation writes down, with the act, whether a derivation is retired. Of one
	// that is, no other's Former tells any more. semel.ErrChanged: it is so already, or
	// there is none; nothing is changed then.
	RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a Act) error
	// Owner returns what owns a consumer's name, "" if nobody has said.
	Owner(ctx context.Context, consumer string) (string, error)
	// SetOwner replaces was by owner, where either may be "", and reports whether it was
	// that that stood there.
	SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error)
	// Consumers returns the names of which the store keeps anything, sorted.
	Consumers(ctx context.Context) ([]string, error)
}

// FormerMark is the identity of a message as its consumer's identities were found
// before. Its mark is written, judged and taken back with the Mark that it belongs to,
// of which it has fingerprint and outcome. The Mark is Fresh only if both are:
//
// Where the Mark's own identity was marked before, that decides, and what the batch
// wrote of the former one is taken back. Otherwise, what stands under the former
// identity decides: Seen, Newer, Busy, or Conflict, Known then being of rows of either
// identity; and what the batch wrote of the Mark's own is taken back. A Repeat counts on
// the row under the identity that decided. Where two marks of a batch meet in an
// identity that the batch itself wrote for the first, the second is Busy.
type FormerMark struct {
	Scope int64
	// ID is at most semel.MaxID bytes.
	ID []byte
	// Strict is as in Mark, of the former identity.
	Strict bool
}

// Other reports whether the content that a marker has counts as another than the mark's.
func (m *Mark) Other(content semel.Fingerprint) bool {
	if m.Strict && (content.Version == 0 || content.Version != m.Fingerprint.Version) {
		return true
	}
	return m.Fingerprint.Conflicts(content)
}
