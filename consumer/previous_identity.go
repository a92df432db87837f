package consumer

import (
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

// PreviousIdentity describes how the identities of a consumer's messages were determined before a change.
//
// Messages are marked under the previous identity and under Config.Identity, in one statement, and a message is
// fresh only if both marks are. So processes of the old and of the new version can share a store: a message that
// one of them has applied is not applied again by the other. If the identity of a message is new but its previous
// identity is marked, the message is a duplicate if the content is equal. Otherwise it is a conflict with the
// reason "conflict with a former identity". So no message is lost if several messages had the same previous
// identity. The row of such a conflict can be retried; it is then marked only under its own identity. A message in
// which no previous identity is found has none.
//
// The store records how identities are determined. If a consumer starts with another derivation and does not name
// the recorded one here, the start fails with semel.ErrIdentityChanged. Keep PreviousIdentity until no message
// that was processed before the change can arrive any more. Then retire it (semel consumers identity retire,
// admin.Derivations).
type PreviousIdentity struct {
	// Identity is the earlier value of Config.Identity. Required. Identity needs a method Derivation() string,
	// which identities made of selectors have.
	Identity identity.Identity
	// TrustUnfingerprinted makes a message a duplicate if its previous identity is marked without a fingerprint,
	// or with one that cannot be compared. Otherwise such a message is a conflict.
	TrustUnfingerprinted bool
}

// derivationOf returns the derivation of an identity; empty if it has none.
func derivationOf(by identity.Identity) string {
	if d, tells := by.(selectors.Derived); tells {
		return d.Derivation()
	}
	return ""
}
