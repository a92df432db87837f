package semel

// Replay describes the replay to which a message belongs. An operator starts a replay to process messages
// again. The store records, under ID, who started the replay and why.
type Replay struct {
	// ID is the number of the replay in the consumer's store, from 1.
	ID int64
	// Generation is the generation in which the messages are applied. 0 means the active generation, in which
	// only messages without a marker are applied. Other numbers are generations of rebuilds.
	Generation int64
	// Effects reports whether effects outside of the store are allowed. If they are not allowed, intents are
	// stored as suppressed, and a handler must not make calls that do harm when they are repeated.
	Effects bool
}

// Replay returns the replay to which the message belongs. The bool is false if there is none. A message that
// a replay has stored in the inbox keeps its replay. If a replay without effects has parked a message, and an
// operator retries that message later, the retry has no effects either.
func (m *Message) Replay() (Replay, bool) {
	if m.Replayed == nil {
		return Replay{}, false
	}
	return *m.Replayed, true
}
