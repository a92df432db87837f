package selectors

// Derived is an optional interface of an identity.Identity that describes how it derives identities. A store
// with admin.Derivations keeps the description for each consumer, and a consumer with another description
// does not start. If an identity does not implement Derived, this check is skipped.
type Derived interface {
	// Derivation returns a text that is not empty. If a change of the rule changes the identity of any message, the
	// text must change. If no identity changes, the text must stay the same.
	Derivation() string
}
