package consumer

import (
	"github.com/semel-go/semel/internal/enum"
)

// LaneMode says which messages are processed in order.
type LaneMode uint8

const (
	// LanesPartition, the default: messages of a partition are processed in order.
	LanesPartition LaneMode = iota
	// LanesNone: messages are processed in any order.
	LanesNone
	// LanesKey: messages with the same key (semel.Message.Key) are processed in order, even if they are in
	// different partitions. Messages with different keys, and messages without a key, are processed in
	// parallel.
	LanesKey
)

// Action says how a message ends that cannot be applied.
type Action uint8

const (
	// ActionPark parks the message in the inbox until a person decides. ActionPark is the default and needs a
	// store with an inbox (store.Inbox). If the store has no inbox, New rejects ActionPark, and a message
	// that a handler parks ends as RetryPolicy.OnExhausted says.
	ActionPark Action = iota
	// ActionHalt stops the consumer, without an ack of the message.
	ActionHalt
	// ActionDiscard ends the message without an effect. ActionDiscard is allowed only if a person or the
	// policy gives a reason.
	ActionDiscard
	// ActionKeepFirst, for conflicts, keeps the effect of the first message. A later message with the same identity and
	// other content is acked and counted as a conflict.
	ActionKeepFirst
	// ActionRetry, for OnPrecondition, retries the message, because the condition may be met later.
	ActionRetry
	// ActionDeadLetter copies the message to the source's dead-letter topic, records the message in the store
	// as dead-lettered, and then acks the message.
	ActionDeadLetter
)

// Strategy is the way in which a consumer makes an effect happen once.
type Strategy uint8

const (
	// StrategyMarker: the transaction that writes the effect also writes a marker. StrategyMarker is the default.
	StrategyMarker Strategy = iota
	// StrategyNatural: the effect is idempotent by nature, so late duplicates do no harm. No marker is
	// written. Config.NaturalReason explains why late duplicates do no harm.
	StrategyNatural
	// StrategyBusinessKey: a unique constraint on the handler's data rejects duplicates. If the constraint rejects an
	// insert, the handler returns semel.Duplicate. No marker is written.
	StrategyBusinessKey
	// StrategyInbox: the message is stored in the inbox together with its marker. Config.AckOnReceipt says
	// whether the handler runs in the same transaction or later.
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
