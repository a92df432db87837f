// Package eventkind contains the kinds of events to which programs do not react. The kinds to which programs react are
// constants of package semel.
package eventkind

import "github.com/semel-go/semel"

// The kinds.
const (
	// Duplicate means that a copy was acked without running the handler.
	Duplicate semel.EventKind = "duplicate"
	// Skipped means that consumer.Config.Filter did not select the message.
	Skipped   semel.EventKind = "skipped"
	Failed    semel.EventKind = "failed"
	Retry     semel.EventKind = "retry"
	Backstop  semel.EventKind = "backstop"
	Stuck     semel.EventKind = "handler does not end"
	Unknown   semel.EventKind = "commit unknown"
	Committed semel.EventKind = "committed"
	// Contended means that a batch had a deadlock, a lock timeout or a serialization failure, and runs again.
	// Contention does not count as an attempt of a message.
	Contended semel.EventKind = "contended"
	// Serial means that, because of contention, batches of the consumer run one at a time for the duration Wait.
	Serial semel.EventKind = "serialised"
	// Parallel means that batches run in parallel again.
	Parallel semel.EventKind = "parallel"
	// RetriesWait means that more attempts fail than the retry budget allows. The next retries begin only after the
	// duration Wait. RetriesWait is reported at most once a minute.
	RetriesWait semel.EventKind = "retries wait"
	// Trial means that several consecutive attempts have failed, and that the consumer now tries one message at a time.
	// Messages is the number of failed attempts, and Err is the error of the last attempt.
	Trial semel.EventKind = "tries one at a time"
	// TrialEnds means that an attempt has succeeded, and that all messages are tried again.
	TrialEnds semel.EventKind = "tries all again"
	// Busy means that another process is processing a copy of the message, and that the message has waited for the
	// duration Wait. Waiting does not count as an attempt. The event is reported after a second, and then once a
	// minute.
	Busy semel.EventKind = "waits for a copy"
	// ClaimLost means that the claim of an inbox row is no longer valid: its lease has ended and another
	// process has claimed the row, or an operator has changed the row.
	ClaimLost semel.EventKind = "claim lost"
	// Waits means that, for the duration Wait, the transaction of a single message has failed only because of other
	// transactions, such as a lock of another transaction, or a row that other transactions change again and again. A
	// failure because of other transactions does not count as an attempt. The event is reported after a second, and
	// then once a minute.
	Waits semel.EventKind = "waits for others"
	// Newer means that the message has waited for the duration Wait, because a newer release wrote its marker and this
	// release does not know the meaning of the marker. Waiting does not count as an attempt. The event is reported
	// after a second, and then once a minute.
	Newer semel.EventKind = "written by a newer release"
	// Control means that an operator has paused, resumed or limited the consumer. Err contains the command, the
	// operator and the reason. While the consumer is paused, Reason is semel.ReasonPaused. Messages is the maximum
	// number of messages a second for each process; 0 means no limit.
	Control semel.EventKind = "control"
	// SameContent means that a message was applied whose content is equal to the content of a recent message of the
	// same source with another id. The producer may create a new id when it sends a message again. SameContent is only
	// a report; see semel.Counts.SameContent.
	SameContent semel.EventKind = "same content under another id"
	// WithoutKey means that a message was applied without a leased key because the key store was down. A
	// duplicate of the message would be applied again (consumer.KeyPolicy.FailOpen). Err is the error of the
	// key store.
	WithoutKey semel.EventKind = "applied without a key"
	// NotReEmitted means that duplicates should have sent intents again (consumer.Config.ReEmitIntents), but the other
	// system may have forgotten their keys. The intents were therefore not sent. Messages is the number of these
	// intents.
	NotReEmitted semel.EventKind = "intents not sent again"
)
