package semel

import (
	"github.com/semel-go/semel/internal/enum"
)

// The names of values, for logs and tests: one table each. Where a policy file
// or a count has a word for the value, it is that word.

// String is the outcome's name.
func (o Outcome) String() string {
	return enum.Name([]string{Applied: "applied", Parked: "parked", DeadLettered: "dead_lettered", Discarded: "discarded"}, o, "Outcome")
}

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

// Outcome is what became of an identity, as its marker says. It holds any number
// that a column can, so that one of a newer release is named as it stands there.
type Outcome int64

// The outcomes. Their numbers are stored and never change; 2 is reserved.
const (
	Applied      Outcome = 1
	Parked       Outcome = 3
	DeadLettered Outcome = 4
	Discarded    Outcome = 5
)
