package semel

// Replay is the deliberate reprocessing of messages by an operator, of which a message is
// part: who started it and why is recorded in the store under its ID.
type Replay struct {
	// ID is the replay's number in the consumer's store, 1 and up.
	ID int64
	// Generation is the scope of deduplication that its messages are applied in: 0 is the
	// live one, where only what is missing is applied; others are those of rebuilds.
	Generation int64
	// Effects says whether effects outside of the store are allowed. Where they are not,
	// intents are written down as suppressed, and a handler must call
	// nobody whom a second call would harm.
	Effects bool
}

// Replay says of which replay the message is part, and whether it is part of one. It says
// so, too, of a message that a replay left in the inbox, whoever works on it later: what
// was parked in a replay without effects has none when a person lets it be tried again.
func (m *Message) Replay() (Replay, bool) {
	if m.Replayed == nil {
		return Replay{}, false
	}
	return *m.Replayed, true
}
