package semel

import (
	"time"
)

// Observer gets the events of a consumer. Observe is called in the consumer's goroutines and must not block.
type Observer interface{ Observe(Event) }

// EventKind is the name of an event, as in the log. docs/reference/log-messages.md lists all names. The constants of
// type EventKind are the kinds to which programs react.
type EventKind string

// The events to which programs react.
const (
	// EventConflict means that a message has a known identity but other content (an idempotency key
	// collision).
	EventConflict  EventKind = "conflict"
	EventParked    EventKind = "parked"
	EventDiscarded EventKind = "discarded"
	// EventDeadLettered means that the message was copied to the dead-letter topic, and that the store has
	// recorded the copy.
	EventDeadLettered EventKind = "dead-lettered"
	// EventReady means that a part that had failed works again.
	EventReady EventKind = "ready"
	// EventNotReady means that a part that the consumer needs has failed. Reason names the part: "store", "source",
	// "inbox", "broker", "fetch", "keys", "breaker" or "clock". With "clock", a number of rows (Messages) had
	// timestamps that were up to Wait ahead of the store's clock. Semel corrects timestamps that are ahead at once, and
	// EventReady follows.
	EventNotReady EventKind = "not ready"
)

// Event is one event of a consumer. An Event contains no payload.
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
	// Messages is the number of messages that the event concerns.
	Messages int
	// Wait is the delay until the next attempt, for "retry" and EventNotReady. For events about a message that waits
	// for other messages, Wait is how long the message has waited.
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
	// Skipped counts messages that consumer.Config.Filter did not select. Skipped messages are acked.
	Skipped int64 `json:"skipped"`
	// Received counts messages that were stored in the inbox before any handler ran. Waiting counts messages that are
	// in the inbox until their next attempt. Inbox counts how messages of the inbox ended later.
	Received int64 `json:"received"`
	Waiting  int64 `json:"waiting"`
	// Failed counts messages that stopped the consumer. Failed messages are not acked.
	Failed int64 `json:"failed"`
	// InFlight counts deliveries that have not ended. Deliveries in flight are in memory, or were returned without ack
	// or lost with their lane since the start. A delivery that was returned or lost comes again and is counted as a new
	// delivery.
	InFlight int64 `json:"in_flight"`
	// Retried counts further attempts after a failure. Rerun counts further runs of handlers that succeeded
	// but were rolled back with their batch, or on purpose (consumer.Config.Canary).
	Retried int64 `json:"retried"`
	Rerun   int64 `json:"rerun"`
	// SameContent counts applied messages whose content is equal to the content of a recent message with another id. If
	// a producer creates a new id when it repeats a message, the effect happens twice, and only the producer can
	// prevent the second effect. Contents are compared by fingerprints; without fingerprints, SameContent is 0. The
	// comparison covers nearly all of the last 10,000 contents, and some earlier contents, of this process since its
	// start.
	SameContent int64 `json:"same_content"`
	// WithoutKey counts messages that were applied without a leased key because the key store was down
	// (consumer.KeyPolicy.FailOpen). Applied counts messages without a key too.
	WithoutKey int64 `json:"without_key"`
	// ReEmitted counts intents that were made due again because of duplicates (consumer.Config.ReEmitIntents).
	// NotReEmitted counts intents that were not sent again because the other system may have forgotten their keys.
	// ReEmitted and NotReEmitted are counted by the consumer that wrote the intents, and also by the sender of the
	// intents.
	ReEmitted    int64 `json:"re_emitted"`
	NotReEmitted int64 `json:"not_re_emitted"`
	// Inbox counts the claims of inbox rows.
	Inbox InboxCounts `json:"inbox"`
}

// InboxCounts contains the numbers of claims of inbox rows. Claimed is the sum of the other fields except
// Reclaimed, plus the current claims.
type InboxCounts struct {
	Claimed      int64 `json:"claimed"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Stepped counts claims that ended with a step that was not the last step of its message.
	Stepped int64 `json:"stepped"`
	// Released counts claims that ended without an attempt. Lost counts claims that another process took over
	// or an operator ended.
	Released int64 `json:"released"`
	Lost     int64 `json:"lost"`
	// Reclaimed counts claims of rows whose previous claim ended with its lease and whose handler has not finished
	// since. The message of a reclaimed row may have crashed its process. Claimed counts reclaimed rows too.
	Reclaimed int64 `json:"reclaimed"`
}

// Unfinished describes messages of a lane that were not acked when an idle run ended: the source could not
// deliver them, or they wait for a newer release.
type Unfinished struct {
	Lane string `json:"lane"`
	// Messages is the maximum number of messages that were not acked, or -1 if the number is unknown.
	Messages int64 `json:"messages"`
	// Reason is the reason as a text, such as "held up by an open transaction".
	Reason string `json:"reason"`
	// Fault means that the cause does not end by itself. If an idle run ends with a Fault, the run returns an
	// error.
	Fault bool `json:"fault"`
}
