package selectors

// Derived is an optional interface of an identity.Identity that describes how it derives
// identities. A store with admin.Derivations keeps the description for each consumer, and a
// consumer with another description does not start. Without Derived this check is skipped.
type Derived interface {
	// Derivation returns a text that is not empty. The text must change if the identity of any
	// message changes, and must stay the same otherwise.
	Derivation() string
}
