package semel

import "github.com/semel-go/semel/internal/enum"

// The names of values, for logs and tests: one table each. Where a policy file
// or a count has a word for the value, it is that word.

// String is the outcome's name.
func (o Outcome) String() string {
	return enum.Name([]string{Applied: "applied", Waiting: "waiting", Parked: "parked", DeadLettered: "dead_lettered", Discarded: "discarded"}, o, "Outcome")
}

// String is the verdict's name.
func (k VerdictKind) String() string {
	return enum.Name([]string{
		Fresh: "fresh", AlreadyApplied: "already applied", AlreadyWaiting: "already waiting", AlreadyParked: "already parked",
		AlreadyDeadLettered: "already dead_lettered", AlreadyDiscarded: "already discarded", Conflict: "conflict", Busy: "busy",
	}, k, "VerdictKind")
}

// String is the class's name.
func (c Class) String() string {
	return enum.Name([]string{ClassRetry: "retry", ClassPermanent: "permanent", ClassContended: "contended", ClassDown: "down", ClassAborted: "aborted"}, c, "Class")
}

// String says what became of the commit.
func (o CommitOutcome) String() string {
	return enum.Name([]string{Committed: "committed", NotCommitted: "not committed", CommitUnknown: "unknown"}, o, "CommitOutcome")
}

// String says what the broker is told.
func (k SettleKind) String() string {
	return enum.Name([]string{Ack: "ack", HandBack: "hand back", DeadLetter: "dead letter"}, k, "SettleKind")
}

// String says how the delivery ended.
func (e End) String() string {
	return enum.Name([]string{
		NotEnded: "not ended", EndApplied: "applied", EndDuplicate: "duplicate", EndConflict: "conflict", EndParked: "parked",
		EndDeadLettered: "dead_lettered", EndDiscarded: "discarded", EndSkipped: "skipped",
	}, e, "End")
}

// String is the ending's word in a policy file.
func (t Then) String() string {
	return enum.Name([]string{
		ThenPark: "park", ThenHalt: "halt", ThenDiscard: "discard", ThenAcceptFirst: "accept_first", ThenRetry: "retry",
		ThenDeadLetter: "dead_letter",
	}, t, "Then")
}

// String is its word in a policy file.
func (o Otherwise) String() string {
	return enum.Name([]string{OtherwiseSkip: "skip", OtherwisePark: "park", OtherwiseDeadLetter: "dead_letter"}, o, "Otherwise")
}

// String is the mode's word in a policy file.
func (m LaneMode) String() string {
	return enum.Name([]string{LanesPartition: "partition", LanesNone: "none"}, m, "LaneMode")
}

// String is the strategy's word in a policy file.
func (s Strategy) String() string {
	return enum.Name([]string{StrategyMarker: "marker", StrategyNatural: "natural", StrategyBusinessKey: "business_key"}, s, "Strategy")
}

// String is the decision's name.
func (d Decision) String() string {
	return enum.Name([]string{
		DecideRetry: "retry", DecidePermanent: "permanent", DecidePark: "park", DecideDiscard: "discard",
		DecideDuplicate: "duplicate", DecideUnmet: "unmet",
	}, d, "Decision")
}

// String says what kind of value it is.
func (k ValueKind) String() string {
	return enum.Name([]string{
		ValueMissing: "missing", ValueNull: "null", ValueBool: "boolean", ValueNumber: "number", ValueString: "string",
		ValueJSON: "object or array", ValueBytes: "bytes",
	}, k, "ValueKind")
}

// String is the state's name, as it is stored.
func (s RowState) String() string { return string(s) }
