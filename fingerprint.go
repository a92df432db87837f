package semel

// Fingerprint identifies the content of a message. The zero value means that there is no fingerprint, and conflicts
// with no other fingerprint.
type Fingerprint struct {
	// Version is the version of the rule that computed the fingerprint. 0 means that there is no fingerprint.
	// Only fingerprints with the same version are compared.
	Version uint8
	Sum     [16]byte
}

// Conflicts reports whether f and g have the same version and differ.
func (f Fingerprint) Conflicts(g Fingerprint) bool {
	return f.Version != 0 && f.Version == g.Version && f.Sum != g.Sum
}
