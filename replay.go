package semel

// Replay describes the replay that a message is part of. An operator starts a replay to process messages again;
// the store records under ID who started it and why.
type Replay struct {
	// ID is the number of the replay in the consumer's store, from 1.
	ID int64
	// Generation is the generation in which the messages are applied. Generation 0 is the active one, in which
	// only messages without a marker are applied. Others belong to rebuilds.
	Generation int64
	// Effects reports whether effects outside of the store are allowed. If not, intents are stored as suppressed,
	// and a handler must not make calls that would do harm when repeated.
	Effects bool
}

// Replay returns the replay that the message is part of, and whether there is one. Replay stays with a message
// that a replay left in the inbox: if an operator later retries a message that was parked by a replay without
// effects, the retry has no effects either.
func (m *Message) Replay() (Replay, bool) {
	if m.Replayed == nil {
		return Replay{}, false
	}
	return *m.Replayed, true
}
