package selectors

// Derived is an optional ability of an identity.Identity: to tell how it finds identities. A store
// that can keeps that of a consumer (admin.Derivations), and a start with another one
// is refused. Without it nothing is kept and nothing refused.
type Derived interface {
	// Derivation is the same text as long as the same messages have the same identities,
	// and another as soon as one message has another. It is not empty.
	Derivation() string
}
