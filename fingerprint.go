package semel

// Fingerprint recognises the content of a message; the zero value is "none"
// and equals every other.
type Fingerprint struct {
	// Version is of the rule that made it; 0 means that there is none. Only
	// fingerprints of one version are compared.
	Version uint8
	Sum     [16]byte
}

// Conflicts reports whether the two are of one version and differ.
func (f Fingerprint) Conflicts(g Fingerprint) bool {
	return f.Version != 0 && f.Version == g.Version && f.Sum != g.Sum
}
