package consumer

import (
	"github.com/semel-go/semel/internal/enum"
)

// LaneMode says which messages are processed in order.
type LaneMode uint8

// The lane modes.
const (
	// LanesPartition: messages of a partition run in order. The default.
	LanesPartition LaneMode = iota
	// LanesNone: no order is kept.
	LanesNone
	// LanesKey: messages with the same key (semel.Message.Key) are processed in order, whatever their partition.
	// Messages with different keys, and messages without a key, are processed in parallel.
	LanesKey
)

// Action is what happens to a message that cannot be applied.
type Action uint8

// The actions.
const (
	// ActionPark parks the message in the inbox until a person decides. ActionPark is the default and needs a
	// store with an inbox (store.Inbox). Without an inbox New refuses it, and a message that a handler parks
	// ends as RetryPolicy.OnExhausted says.
	ActionPark Action = iota
	// ActionHalt stops the consumer. The message stays unsettled.
	ActionHalt
	// ActionDiscard closes the message without an effect. ActionDiscard is allowed only if a person or the
	// policy gives a reason.
	ActionDiscard
	// ActionKeepFirst, for conflicts, keeps the effect of the first content. The message with other content is
	// settled and counted as a conflict.
	ActionKeepFirst
	// ActionRetry, for OnPrecondition, retries the message, because the condition may be met later.
	ActionRetry
	// ActionDeadLetter copies the message to the source's dead-letter topic, records it in the store as
	// dead-lettered, and then settles it.
	ActionDeadLetter
)

// Strategy is the way in which a consumer makes an effect happen once.
type Strategy uint8

// The strategies.
const (
	// StrategyMarker: a marker commits with the effect. The default.
	StrategyMarker Strategy = iota
	// StrategyNatural: the effect is idempotent by nature, and late copies do no harm. No marker is written.
	// Config.NaturalReason says why.
	StrategyNatural
	// StrategyBusinessKey: a unique constraint of the effect rejects copies; the handler reports that with
	// semel.Duplicate. No marker is written.
	StrategyBusinessKey
	// StrategyInbox: a marker and an inbox row with the message are written in the transaction of the effect.
	// Config.AckOnReceipt says whether the effect happens with the receipt or later.
	StrategyInbox
)

// marks reports whether the strategy writes markers.
func (s Strategy) marks() bool { return s == StrategyMarker || s == StrategyInbox }

// String returns the name of the action in a policy file.
func (t Action) String() string {
	return enum.Name([]string{
		ActionPark: "park", ActionHalt: "halt", ActionDiscard: "discard", ActionKeepFirst: "keep_first", ActionRetry: "retry",
		ActionDeadLetter: "dead_letter",
	}, t, "Action")
}

// String returns the name of the mode in a policy file.
func (m LaneMode) String() string {
	return enum.Name([]string{LanesPartition: "partition", LanesNone: "none", LanesKey: "key"}, m, "LaneMode")
}

// String returns the name of the strategy in a policy file.
func (s Strategy) String() string {
	return enum.Name([]string{StrategyMarker: "marker", StrategyNatural: "natural", StrategyBusinessKey: "business_key", StrategyInbox: "inbox"}, s, "Strategy")
}
