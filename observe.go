package semel

import (
	"time"
)

// Observer watches a consumer. It is called from the consumer's goroutines,
// and must not block.
type Observer interface{ Observe(Event) }

// EventKind names what happened, in the words of the log: docs/operate/logs.md explains them.
// The constants are those that programs act on.
type EventKind string

// The events that programs act on.
const (
	// EventConflict: an idempotency key collision, that is, a known identity with
	// other content.
	EventConflict  EventKind = "conflict"
	EventParked    EventKind = "parked"
	EventDiscarded EventKind = "discarded"
	// EventDeadLettered: the copy is in the dead letters, the store knows.
	EventDeadLettered EventKind = "dead-lettered"
	// EventReady: it works again.
	EventReady EventKind = "ready"
	// EventNotReady: a part that the consumer needs to go on, which Reason names, failed
	// when it was tried: "store", "source", "inbox", "broker", "fetch", "keys", "breaker" or "clock": as many rows as
	// Messages says were dated in the future of the store's clock, by Wait at most. Rows are put
	// right at once, so that EventReady follows.
	EventNotReady EventKind = "not ready"
)

// Event is one thing that happened. It carries no payload.
type Event struct {
	Kind     EventKind
	Consumer string
	Lane     string
	// Key is set for events of one message.
	Key    Key
	Reason Reason
	// Stream and Version are set for events of one message that is a version of a stream.
	Stream  string
	Version int64
	// Messages is how many messages the event is about.
	Messages int
	// Wait is until the next try, for "retry" and EventNotReady, and for events about a
	// message that waits for others how long it has waited.
	Wait time.Duration
	Err  error
}

// Counts are what a consumer did since it started. Deliveries is the sum of
// all but Retried, Rerun, SameContent, WithoutKey, ReEmitted and NotReEmitted.
type Counts struct {
	Deliveries   int64 `json:"deliveries"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Conflicts    int64 `json:"conflicts"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Skipped are messages of others, which consumer.Config.Filter leaves out: settled.
	Skipped int64 `json:"skipped"`
	// Received are messages that ended in the inbox before any handler ran, Waiting
	// those that wait there for their next try. What becomes of them, Inbox counts.
	Received int64 `json:"received"`
	Waiting  int64 `json:"waiting"`
	// Failed are endings by halt: unsettled.
	Failed int64 `json:"failed"`
	// InFlight are deliveries that have not ended: they are in memory, or were
	// left unsettled since the start, handed back or dropped with their lane,
	// and come again as deliveries of their own.
	InFlight int64 `json:"in_flight"`
	// Retried counts further attempts, Rerun runs of handlers that had run well
	// and were rolled back with their batch.
	Retried int64 `json:"retried"`
	Rerun   int64 `json:"rerun"`
	// SameContent counts messages that took effect, each with an id of its own and the
	// content of one that did so not long ago: a producer that mints an id when it sends
	// again doubles effects, and nobody but the producer can keep it from that. It is
	// found by fingerprints, 0 without them, among nearly all of the last 10,000 contents
	// and fewer of those before, of this process since it started.
	SameContent int64 `json:"same_content"`
	// WithoutKey counts messages that were applied while the store of the leased keys did
	// not work (consumer.KeyPolicy.FailOpen); they are in Applied, too, and no key
	// says so.
	WithoutKey int64 `json:"without_key"`
	// ReEmitted counts intents that duplicates have made due again
	// (consumer.Config.ReEmitIntents), NotReEmitted those that were to be sent again and were
	// not, since the other side may have forgotten their keys: of the consumer that wrote
	// them, or of their sender.
	ReEmitted    int64 `json:"re_emitted"`
	NotReEmitted int64 `json:"not_re_emitted"`
	// Inbox counts what became of rows of the inbox.
	Inbox InboxCounts `json:"inbox"`
}

// InboxCounts are what became of rows of the inbox that a consumer claimed. Claimed is
// the sum of the others but Reclaimed, and of what it has in hand.
type InboxCounts struct {
	Claimed      int64 `json:"claimed"`
	Applied      int64 `json:"applied"`
	Duplicates   int64 `json:"duplicates"`
	Waiting      int64 `json:"waiting"`
	Parked       int64 `json:"parked"`
	DeadLettered int64 `json:"dead_lettered"`
	Discarded    int64 `json:"discarded"`
	// Stepped are claims that ended with a step which was not the last of its message.
	Stepped int64 `json:"stepped"`
	// Released were given back without an attempt; Lost are claims that another
	// worker, or a person, took or ended.
	Released int64 `json:"released"`
	Lost     int64 `json:"lost"`
	// Reclaimed are those of Claimed whose former claim ended with its lease, and of which no
	// handler has come to an end since: who had them may have died of them.
	Reclaimed int64 `json:"reclaimed"`
}

// Unfinished is what a lane has that was not settled when a run ended idle: what the
// source could not deliver, or what waits for a newer release.
type Unfinished struct {
	Lane string `json:"lane"`
	// Messages are how many at most, -1 where nobody can tell.
	Messages int64 `json:"messages"`
	// Reason says to people why, such as "held up by an open transaction".
	Reason string `json:"reason"`
	// Fault: it does not pass by itself, and fails a run that ends idle with it.
	Fault bool `json:"fault"`
}
