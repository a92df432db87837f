package consumer

import (
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

// PreviousIdentity is how the identities of a consumer's messages were found before.
//
// Messages are marked under it as well as under Config.Identity, in the same statement,
// and a message is fresh only where both are. So processes of both versions may run side
// by side over one store, and what the one has applied the other does not apply again. A
// message whose own identity is new, and whose former one is marked, is a duplicate if its
// content is equal, and otherwise a conflict (reason "conflict with a former identity"): where a former
// identity was coarser, so that several messages had one, none of them is lost. The row of
// such a conflict can be retried; it runs under its own identity alone. A message in which
// no former identity is found has none.
//
// The store remembers how identities are found, and refuses a start with another
// derivation that does not name the recorded one here (semel.ErrIdentityChanged). Name it
// until no message can come again that was processed before the change, and then retire it
// (semel consumers identity retire, admin.Derivations).
type PreviousIdentity struct {
	// Identity is what Config.Identity was. Required; it tells its derivation
	// (a method Derivation() string), as those made of selectors do.
	Identity identity.Identity
	// TrustUnfingerprinted makes a duplicate of a message whose former identity is marked
	// without a fingerprint, or with one of another rule, which cannot be compared with the
	// message's. Otherwise it is a conflict.
	TrustUnfingerprinted bool
}

// derivationOf returns the derivation of an identity, empty if it has none.
func derivationOf(by identity.Identity) string {
	if d, tells := by.(selectors.Derived); tells {
		return d.Derivation()
	}
	return ""
}
