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
	// Generation is the generation of its scopes, which separates its identities from those of other
	// derivations. The first has 0.
	Generation int64
	// Text describes the selectors, 1 to MaxDerivation bytes.
	Text string
	// Former is the generation of its previous derivation, as named when it was recorded, or NoFormer.
	Former int64
	// First is the time when it was recorded, by the store's clock.
	First time.Time
	// Retired reports that an operator declared that no message with this derivation will be delivered
	// any more, so that it need not be named as the previous derivation.
	Retired bool
}

// MaxDerivation is the maximum length of a derivation's text in bytes.
const MaxDerivation = 1024

// NoFormer is Derivation.Former without a previous derivation.
const NoFormer = -1

// Derivations is implemented by a TxStore that stores the derivations of consumers and can also mark previous
// identities (store.Mark.Previous), in Begin and in the methods of CallerTx. Without it a changed
// derivation is not noticed, and a consumer cannot have a previous identity.
type Derivations interface {
	// Derivations returns the derivations of a consumer by generation, or of all consumers with "", by
	// consumer and generation.
	Derivations(ctx context.Context, consumer string) ([]Derivation, error)
	// AddDerivation records a derivation unless its consumer already has its generation or text, and
	// reports whether it was added. The store sets First. semel.ErrUnsupported: the store keeps
	// markers of one generation only.
	AddDerivation(ctx context.Context, d Derivation) (added bool, err error)
	// RetireDerivation sets whether a derivation is retired, and writes an audit record. A retired
	// derivation is no longer the Former of another. semel.ErrChanged: the derivation has this value
	// already or does not exist; nothing is changed.
	RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error
	// Owner returns the owner of a consumer's name; "" if it has none.
	Owner(ctx context.Context, consumer string) (string, error)
	// SetOwner replaces the owner was by owner; either may be "". SetOwner reports whether was was the
	// stored owner.
	SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error)
	// Consumers returns the sorted names of all consumers that have records in the store.
	Consumers(ctx context.Context) ([]string, error)
}
