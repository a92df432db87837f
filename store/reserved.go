package store

// What is stored by number or by name is reserved for ever: also what no release
// has written yet. A number is written one release after it can be read, so that
// two neighbouring releases can share a store. Nothing else may take these.
//
// A release that meets one which it does not write itself, reserved or unknown,
// holds the message and changes nothing.
var (
	reservedOutcomes = map[uint8]string{1: "applied", 2: "waiting", 3: "parked", 4: "dead_lettered", 5: "discarded"}
	reservedStates   = []string{"RECEIVED", "IN_PROGRESS", "COMPLETED", "FAILED_RETRYABLE", "FAILED_TERMINAL",
		"PARKED", "BLOCKED", "DEAD_LETTERED", "DISCARDED"}
)

// KnownOutcome is the outcome with a stored number; false if this release does not
// write it, and so does not know what it means.
func KnownOutcome(number int64) (Outcome, bool) {
	for _, o := range []Outcome{Applied, Waiting, Parked, DeadLettered, Discarded} {
		if number == int64(o) {
			return o, true
		}
	}
	return 0, false
}

// Found is the answer to a mark that met a marker with a stored outcome: Seen, or
// Newer for an outcome that this release does not know. A store asks for it
// before it compares fingerprints.
func Found(number int64) Verdict {
	if o, known := KnownOutcome(number); known {
		return Verdict{Kind: Seen, Was: o}
	}
	return Verdict{Kind: Newer, Was: Outcome(number)}
}
