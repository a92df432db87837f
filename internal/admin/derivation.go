package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// Derivation describes how the identities of a consumer's messages are or were determined: the selectors of
// id and source as a text.
type Derivation struct {
	Consumer string
	// Generation is the number of the derivation in the store, which separates its identities from the
	// identities of other derivations. The first derivation has number 0.
	Generation int64
	// Text describes the selectors, 1 to MaxDerivation bytes.
	Text string
	// Former is the number of the previous derivation, as named when this derivation was recorded, or
	// NoFormer.
	Former int64
	// First is the time when the derivation was recorded, by the store's clock.
	First time.Time
	// Retired reports that an operator has declared that no message with this derivation will be delivered
	// any more. A retired derivation need not be named as the previous derivation.
	Retired bool
}

// MaxDerivation is the maximum length of a derivation's text in bytes.
const MaxDerivation = 1024

// NoFormer is the value of Derivation.Former if there is no previous derivation.
const NoFormer = -1

// Derivations is implemented by a TxStore that stores the derivations of consumers. Such a store can also
// mark previous identities (store.Mark.Previous), in Begin and in the methods of CallerTx. Without
// Derivations, a changed derivation is not noticed, and a consumer cannot have a previous identity.
type Derivations interface {
	// Derivations returns the derivations of a consumer in the order of their numbers. If consumer is "",
	// Derivations returns the derivations of all consumers, ordered by consumer and number.
	Derivations(ctx context.Context, consumer string) ([]Derivation, error)
	// AddDerivation records a derivation, unless its consumer already has a derivation with the same number
	// or text. The result says whether it was added. The store sets First. semel.ErrUnsupported means that
	// the store keeps markers of one derivation only.
	AddDerivation(ctx context.Context, d Derivation) (added bool, err error)
	// RetireDerivation sets whether a derivation is retired, and writes an audit record. A retired derivation
	// is no longer the Former of another derivation. semel.ErrChanged means that the derivation has this
	// value already or does not exist; nothing is changed.
	RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error
	// Owner returns the owner of a consumer's name, or "" if the name has no owner.
	Owner(ctx context.Context, consumer string) (string, error)
	// SetOwner replaces the owner was by owner. Both may be "". SetOwner returns false, and changes nothing,
	// if the stored owner is not was.
	SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error)
	// Consumers returns the sorted names of all consumers that have records in the store.
	Consumers(ctx context.Context) ([]string, error)
}
