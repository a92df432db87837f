package policy

import "fmt"

// The table of the audit.

// LeastAuditKey is how many bytes a key of the audit has at least: with fewer it could be
// guessed.
const LeastAuditKey = 32

// Audit says how acts of operators are sealed.
type Audit struct {
	// Key is what they are sealed under, a secret: never print it; empty for none.
	Key string
}

func auditShape() object[Audit] {
	return object[Audit]{fields: []field[Audit]{
		key(meta{name: "key", doc: "A secret of at least 32 bytes, at random, as `${SEMEL_AUDIT_KEY}`, under which acts are sealed in all stores of the file: who can write the tables and has it not cannot seal an act that was changed. All processes of a store need the same one. Keep it: without it nobody can verify."},
			word{what: "a secret of at least 32 bytes", check: badAuditKey}, func(a *Audit) *string { return &a.Key }),
	}}
}

// badAuditKey says nothing of the secret but how long it is.
func badAuditKey(s string) (reason, remedy string) {
	if len(s) < LeastAuditKey {
		return fmt.Sprintf("a key of %d bytes could be guessed", len(s)), fmt.Sprintf("give at least %d, at random, as openssl rand -hex 32 makes them", LeastAuditKey)
	}
	return "", ""
}
