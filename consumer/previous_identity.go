package consumer

import (
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/selectors"
)

// PreviousIdentity describes how the identities of a consumer's messages were determined before a change.
//
// Messages are marked under the previous identity and under Config.Identity, in one statement. A message is new only if
// neither of its two markers exists. So processes of the old and of the new version of a service can share a store: if
// one version has applied a message, the other version does not apply the message again. If only the previous identity
// of a message is marked, the message is a duplicate if the content is equal. If the content differs, the message is a
// conflict with the reason "conflict with a former identity". So if several messages had the same previous identity, no
// message is lost. The row of a conflict with a former identity can be retried; the message is then marked only under
// Config.Identity. A message in which no previous identity is found is marked only under Config.Identity.
//
// The store records how the consumer determines identities. A start fails with semel.ErrIdentityChanged if neither
// Config.Identity nor PreviousIdentity determines identities as recorded. Keep PreviousIdentity until no message that
// was processed before the change can arrive any more. When no such message can arrive, retire the previous identity
// (semel consumers identity retire, admin.Derivations).
type PreviousIdentity struct {
	// Identity is the earlier value of Config.Identity. Required. The type of Identity needs a method
	// Derivation() string. Identities made of selectors have that method.
	Identity identity.Identity
	// TrustUnfingerprinted decides about messages whose previous identity is marked without a fingerprint, or with a
	// fingerprint that cannot be compared. If TrustUnfingerprinted is set, the message is a duplicate. If
	// TrustUnfingerprinted is not set, the message is a conflict.
	TrustUnfingerprinted bool
}

// derivationOf returns the text that describes how an identity is formed (its derivation), or "" if the identity has no
// method Derivation.
func derivationOf(by identity.Identity) string {
	if d, tells := by.(selectors.Derived); tells {
		return d.Derivation()
	}
	return ""
}
