package semel

import (
	"time"
)

// Observer is notified of a consumer's events. Observe is called in the consumer's goroutines and must not block.
type Observer interface{ Observe(Event) }

// EventKind is the name of an event, as in the log; docs/reference/log-messages.md lists all of them. The constants are the
// kinds on which programs act.
type EventKind string

// The events on which programs act.
const (
	// EventConflict: a message has a known identity but other content (an idempotency key collision).
	EventConflict  EventKind = "conflict"
	EventParked    EventKind = "parked"
	EventDiscarded EventKind = "discarded"
	// EventDeadLettered: the message was copied to the dead-letter topic, and the store has recorded that.
	EventDeadLettered EventKind = "dead-lettered"
	// EventReady: a part that had failed works again.
	EventReady EventKind = "ready"
	// EventNotReady: a part that the consumer needs failed. Reason names the part: "store", "source", "inbox",
	// "broker", "fetch", "keys", "breaker" or "clock". With "clock", Messages rows had timestamps up to Wait ahead
	// of the store's clock; the rows are corrected at once, and EventReady follows.
	EventNotReady EventKind = "not ready"
)

// Event is one event of a consumer. Event contains no payload.
type Event struct {
	Kind     EventKind
	Consumer string
	Lane     string
	// Key is set for events about one message.
	Key    Key
	Reason Reason
	// Stream and Version are set for events about one message that has a version.
	Stream  string
	Version int64
	// Messages is the number of messages that the event is about.
	Messages int
	// Wait is the delay until the next attempt, for "retry" and EventNotReady. For events about a message that
	// waits for others it is how long the message has waited.
	Wait time.Duration
	Err  error
}

// Counts are the counters of a consumer since its start. Deliveries is the sum of all other fields except Retried,
// Rerun, SameContent, WithoutKey, ReEmitted and NotReEmitted.
type Counts struct {
	Deliveries   int64 `json:"deliveries"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Conflicts    int64 `json:"conflicts"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Skipped messages were not selected by consumer.Config.Filter; skipped messages are settled.
	Skipped int64 `json:"skipped"`
	// Received messages were stored in the inbox before any handler ran. Waiting messages are in the inbox until
	// their next attempt. Inbox counts what happened to them afterwards.
	Received int64 `json:"received"`
	Waiting  int64 `json:"waiting"`
	// Failed messages halted the consumer, and are unsettled.
	Failed int64 `json:"failed"`
	// InFlight deliveries have not ended. They are in memory, or they were returned unsettled or lost with their
	// lane since the start; those are delivered again and counted as new deliveries.
	InFlight int64 `json:"in_flight"`
	// Retried counts further attempts after a failure. Rerun counts further runs of handlers that had succeeded
	// but were rolled back with their batch.
	Retried int64 `json:"retried"`
	Rerun   int64 `json:"rerun"`
	// SameContent counts applied messages whose content is equal to that of a recent message with another id. If a
	// producer creates a new id when it repeats a message, the effect is doubled, and only the producer can
	// prevent that. Contents are compared by fingerprints; without them SameContent is 0. The comparison covers
	// nearly all of the last 10,000 contents, and some earlier ones, of this process since its start.
	SameContent int64 `json:"same_content"`
	// WithoutKey counts messages that were applied without a leased key because the key store was down
	// (consumer.KeyPolicy.FailOpen). They are also counted in Applied.
	WithoutKey int64 `json:"without_key"`
	// ReEmitted counts intents that were made due again because of duplicates (consumer.Config.ReEmitIntents).
	// NotReEmitted counts intents that were not sent again because the other system may have forgotten their keys.
	// Both the consumer that wrote the intents and their sender count.
	ReEmitted    int64 `json:"re_emitted"`
	NotReEmitted int64 `json:"not_re_emitted"`
	// Inbox counts the claims of inbox rows.
	Inbox InboxCounts `json:"inbox"`
}

// InboxCounts count the claims of inbox rows. Claimed is the sum of the other fields except Reclaimed, plus the
// claims in progress.
type InboxCounts struct {
	Claimed      int64 `json:"claimed"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Stepped claims ended with a step that was not the last of its message.
	Stepped int64 `json:"stepped"`
	// Released claims ended without an attempt. Lost claims were taken by another worker, or ended by an operator.
	Released int64 `json:"released"`
	Lost     int64 `json:"lost"`
	// Reclaimed counts claims of rows whose previous claim ended with its lease and whose handler has not finished
	// since. Such a message may have crashed its process. They are also counted in Claimed.
	Reclaimed int64 `json:"reclaimed"`
}

// Unfinished describes unsettled messages of a lane when a run ended idle: the source could not deliver them, or
// they wait for a newer release.
type Unfinished struct {
	Lane string `json:"lane"`
	// Messages is the maximum number of such messages; -1 if unknown.
	Messages int64 `json:"messages"`
	// Reason is a text for people, such as "held up by an open transaction".
	Reason string `json:"reason"`
	// Fault means that the cause does not go away by itself. A run that ends idle with a Fault fails.
	Fault bool `json:"fault"`
}
