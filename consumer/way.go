package consumer

// way says what makes the effects of a consumer happen once. The constructor chooses it, and
// with it the runner of the consumer's flights.
type way uint8

// The ways.
const (
	// byTransaction: the marker commits with the handler's writes (New, NewBatch, NewSteps).
	byTransaction way = iota
	// byClaim: the inbox row is claimed, the handler calls out, and the claim ends
	// (NewLeased, NewLeasedSteps).
	byClaim
	// byAnswer: as byClaim, and the claim ends in the transaction that applies the answer
	// (NewCalling with StrategyInbox).
	byAnswer
	// byLookup: markers are looked up, the handler calls out, and the transaction that applies
	// the answer marks the message (NewCalling with StrategyMarker).
	byLookup
	// byKey: a leased key is claimed, the handler calls out, and the key is completed
	// (NewKeyed).
	byKey
)

// overRows reports whether handlers call out for messages of the store's inbox, one message in
// a flight.
func (w way) overRows() bool { return w == byClaim || w == byAnswer || w == byLookup }
