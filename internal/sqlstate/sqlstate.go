// Package sqlstate contains the codes of PostgreSQL's errors that the stores use. See
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
package sqlstate

// The codes. The first two characters of a code are its class.
const (
	FeatureNotSupported  = "0A000"
	UniqueViolation      = "23505"
	ExclusionViolation   = "23P01"
	NoTransaction        = "25P01"
	FailedTransaction    = "25P02"
	InvalidStatementName = "26000"
	SerializationFailure = "40001"
	CompletionUnknown    = "40003"
	Deadlock             = "40P01"
	LockNotAvailable     = "55P03"
	QueryCanceled        = "57014"
	// The SQL function {prefix}expect raises Unmet, and the SQL function {prefix}stand raises ClaimLost.
	Unmet     = "SM001"
	ClaimLost = "SM002"
)

// RolledBack reports whether the given code proves that nothing was committed. The code is from the response to COMMIT,
// or to a statement that was sent together with COMMIT. A server that shuts down or is broken, and a pooler that has
// lost its server, also respond with an error, but without knowing the outcome.
func RolledBack(code string) bool {
	if len(code) != 5 || code == CompletionUnknown {
		return false
	}
	switch code[:2] {
	case "08", "58", "XX", "F0":
		return false
	case "57":
		return code == QueryCanceled
	}
	return true
}
