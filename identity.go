package semel

// Identity finds what makes two deliveries copies of one message. See
// CloudEvents and By.
type Identity interface {
	// Identify returns the producer's name for itself, which may be empty,
	// and the message's id. An error is one of the ReasonNoIdentity,
	// ReasonBadIdentity, ReasonIdentityTooLong kind: see IdentityError.
	Identify(m *Message) (source, id string, err error)
	// Validate reports why this identity must not be used (a broker's
	// coordinates, an unknown selector); nil if it may.
	Validate() error
}

// IdentityError says why a message has no usable identity.
type IdentityError struct {
	Reason Reason
	Detail string
}

func (e *IdentityError) Error() string { return string(e.Reason) + ": " + e.Detail }

// Fingerprinter makes fingerprints. See FingerprintBody.
type Fingerprinter interface {
	Fingerprint(m *Message) (Fingerprint, error)
	Validate() error
}
