package store

// These stored numbers and names are reserved permanently, including those that no release writes yet. A release
// writes a new number only after the previous release can read it, so that two neighbouring releases can share a
// store.
//
// A release that reads a number or name which it does not write itself holds the message and changes nothing.
var (
	reservedOutcomes = map[uint8]string{1: "applied", 2: "waiting", 3: "parked", 4: "dead_lettered", 5: "discarded"}
	reservedStates   = []string{"RECEIVED", "IN_PROGRESS", "COMPLETED", "FAILED_RETRYABLE", "FAILED_TERMINAL",
		"PARKED", "BLOCKED", "DEAD_LETTERED", "DISCARDED"}
)

// KnownOutcome returns the outcome with a stored number. KnownOutcome returns false if this release does not
// write the number and therefore does not know its meaning.
func KnownOutcome(number int64) (Outcome, bool) {
	for _, o := range []Outcome{Applied, Waiting, Parked, DeadLettered, Discarded} {
		if number == int64(o) {
			return o, true
		}
	}
	return 0, false
}

// Found returns the verdict for a mark if a marker with this stored outcome exists: Seen, or Newer if this release
// does not know the outcome. A store calls it before it compares fingerprints.
func Found(number int64) Verdict {
	if o, known := KnownOutcome(number); known {
		return Verdict{Kind: Seen, Was: o}
	}
	return Verdict{Kind: Newer, Was: Outcome(number)}
}
