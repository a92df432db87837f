package store

// Numbers and names that a store may contain. The numbers and names are reserved permanently, including those that no
// release writes yet. A release writes a new number only if the previous release can read it, so that two consecutive
// releases can share a store.
//
// If a release reads a number or name that it does not write itself, the message waits and nothing is changed.
var (
	reservedOutcomes = map[uint8]string{1: "applied", 2: "waiting", 3: "parked", 4: "dead_lettered", 5: "discarded"}
	reservedStates   = []string{"RECEIVED", "IN_PROGRESS", "COMPLETED", "FAILED_RETRYABLE", "FAILED_TERMINAL",
		"PARKED", "BLOCKED", "DEAD_LETTERED", "DISCARDED"}
)

// Known reports whether this release knows the outcome. The result is false for a number that only a newer release
// writes.
func (o Outcome) Known() bool { return o >= Applied && o <= Discarded }

// Found returns the Verdict for a mark whose marker has the given stored outcome: Seen, or Newer if this release does
// not know the outcome. A store calls Found before it compares fingerprints.
func Found(number int64) Verdict {
	if o := Outcome(number); o.Known() {
		return Verdict{Kind: Seen, Was: o}
	}
	return Verdict{Kind: Newer, Was: Outcome(number)}
}
