package selectors

// Derived is an optional interface of an identity.Identity that describes how it derives identities. A store
// with admin.Derivations keeps the description for each consumer, and a consumer with another description
// does not start. If an identity does not implement Derived, this check is skipped.
type Derived interface {
	// Derivation returns a text that is not empty. If the identity of any message changes, the text must
	// change. Otherwise the text must stay the same.
	Derivation() string
}
