package consumer

import (
	"github.com/semel-go/semel/internal/enum"
)

// LaneMode says what keeps its order.
type LaneMode uint8

// The lane modes.
const (
	// LanesPartition: messages of a partition run in order. The default.
	LanesPartition LaneMode = iota
	// LanesNone: no order is kept.
	LanesNone
	// LanesKey: messages with one key (semel.Message.Key) run in order and never at
	// once, whatever partitions they are of; different keys run beside one another. A
	// message without a key has no order.
	LanesKey
)

// Action is how a message ends that cannot be applied. The set is closed.
type Action uint8

// The endings.
const (
	// ActionPark sets the message aside for a person. The default. It needs a store with an
	// inbox (store.Inbox): without one New refuses it, and what a handler parks ends as
	// RetryPolicy.OnExhausted says.
	ActionPark Action = iota
	// ActionHalt stops the consumer; the message stays unsettled.
	ActionHalt
	// ActionDiscard closes it; only where a person or the policy names a reason.
	ActionDiscard
	// ActionKeepFirst, for conflicts: the first content stands, the other is
	// settled and counted as a conflict.
	ActionKeepFirst
	// ActionRetry, for OnPrecondition: the condition may be met later.
	ActionRetry
	// ActionDeadLetter copies it to the source's dead letters, then sets it aside
	// in the store as dead-lettered, then settles it.
	ActionDeadLetter
)

// Strategy says what makes the effect happen once.
type Strategy uint8

// The strategies.
const (
	// StrategyMarker: a marker commits with the effect. The default.
	StrategyMarker Strategy = iota
	// StrategyNatural: the effect is idempotent by nature and late copies do
	// no harm; no marker is written. Config.NaturalReason says why.
	StrategyNatural
	// StrategyBusinessKey: the effect's own unique constraint decides; the
	// handler reports its violation with Duplicate. No marker is written.
	StrategyBusinessKey
	// StrategyInbox: a marker, and a row of the store's inbox with the message,
	// commit with the effect. Config.AckOnReceipt says whether the effect comes with the
	// receipt or after it.
	StrategyInbox
)

// marks reports whether a marker is written.
func (s Strategy) marks() bool { return s == StrategyMarker || s == StrategyInbox }

// String is the ending's word in a policy file.
func (t Action) String() string {
	return enum.Name([]string{
		ActionPark: "park", ActionHalt: "halt", ActionDiscard: "discard", ActionKeepFirst: "keep_first", ActionRetry: "retry",
		ActionDeadLetter: "dead_letter",
	}, t, "Action")
}

// String is the mode's word in a policy file.
func (m LaneMode) String() string {
	return enum.Name([]string{LanesPartition: "partition", LanesNone: "none", LanesKey: "key"}, m, "LaneMode")
}

// String is the strategy's word in a policy file.
func (s Strategy) String() string {
	return enum.Name([]string{StrategyMarker: "marker", StrategyNatural: "natural", StrategyBusinessKey: "business_key", StrategyInbox: "inbox"}, s, "Strategy")
}
