package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// Derivation is the record of a rule that forms the identities of a consumer's messages: the selectors of id and source
// as a text.
type Derivation struct {
	Consumer string
	// Generation is the number of the derivation in the store. Identities that were formed by different derivations
	// have different numbers. The first derivation has number 0.
	Generation int64
	// Text is the text of the selectors, 1 to MaxDerivation bytes.
	Text string
	// Former is the number of the previous derivation that the consumer named when the derivation was recorded, or
	// NoFormer.
	Former int64
	// First is the time when the derivation was first recorded, by the store's clock.
	First time.Time
	// Retired reports that an operator has declared that messages with identities of the derivation will not be
	// delivered any more. A policy need not name a retired derivation as the previous one.
	Retired bool
}

// MaxDerivation is the maximum length of Derivation.Text in bytes.
const MaxDerivation = 1024

// NoFormer is the value of Derivation.Former if there is no previous derivation.
const NoFormer = -1

// Derivations is implemented by a TxStore that records how consumers form identities (Derivation). A store with
// Derivations can also mark previous identities (store.Mark.Previous), in Begin and in the methods of CallerTx. With
// any other store, a changed identity is not noticed, and a consumer cannot have a previous identity.
type Derivations interface {
	// Derivations returns the recorded derivations of a consumer in the order of their numbers. If consumer is "",
	// Derivations returns the derivations of all consumers, ordered by consumer and number.
	Derivations(ctx context.Context, consumer string) ([]Derivation, error)
	// AddDerivation records a derivation, unless its consumer already has a derivation with the same number or text.
	// The result added says whether the derivation was added. The store sets the field First. semel.ErrUnsupported
	// means that the store can have markers of only one derivation.
	AddDerivation(ctx context.Context, d Derivation) (added bool, err error)
	// RetireDerivation sets Derivation.Retired, and writes an audit record. A retired derivation is no longer the
	// Former of another derivation. If the derivation does not exist or already has the value, RetireDerivation changes
	// nothing and returns semel.ErrChanged.
	RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error
	// Owner returns the owner of a consumer's name, or "" if the name has no owner.
	Owner(ctx context.Context, consumer string) (string, error)
	// SetOwner replaces the stored owner of a consumer by the parameter owner. The stored owner must be equal to the
	// parameter was; if it is not, SetOwner changes nothing and returns false. An empty parameter means that there is
	// no owner.
	SetOwner(ctx context.Context, consumer, was, owner string) (set bool, err error)
	// Consumers returns the sorted names of all consumers that have records in the store.
	Consumers(ctx context.Context) ([]string, error)
}
