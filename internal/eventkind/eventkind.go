// Package eventkind contains the kinds of events on which programs do not act. The others are constants of package
// semel.
package eventkind

import "github.com/semel-go/semel"

// The kinds.
const (
	// Duplicate: a copy was settled without running its handler.
	Duplicate semel.EventKind = "duplicate"
	// Skipped: consumer.Config.Filter does not select the message.
	Skipped   semel.EventKind = "skipped"
	Failed    semel.EventKind = "failed"
	Retry     semel.EventKind = "retry"
	Backstop  semel.EventKind = "backstop"
	Stuck     semel.EventKind = "handler does not end"
	Unknown   semel.EventKind = "commit unknown"
	Committed semel.EventKind = "committed"
	// Contended: a batch had a deadlock, a lock timeout or a serialization failure and runs again. No message is
	// charged with an attempt.
	Contended semel.EventKind = "contended"
	// Serial: because of contention, batches of this consumer run one at a time for the duration Wait.
	Serial semel.EventKind = "serialised"
	// Parallel: batches run in parallel again.
	Parallel semel.EventKind = "parallel"
	// RetriesWait: more attempts fail than the retry budget allows; a retry that is planned now begins after Wait.
	// Reported at most once a minute.
	RetriesWait semel.EventKind = "retries wait"
	// Trial: Messages attempts in a row have failed, the last one with Err. The consumer now tries one message at
	// a time.
	Trial semel.EventKind = "tries one at a time"
	// TrialEnds: an attempt succeeded, and all messages are tried again.
	TrialEnds semel.EventKind = "tries all again"
	// Busy: for Wait, a message has waited for a copy of it that another process is processing. No message is
	// charged with an attempt. Reported after a second, and then once a minute.
	Busy semel.EventKind = "waits for a copy"
	// ClaimLost: the claim of an inbox row is no longer valid, because its lease ended and another process has the
	// row, or an operator changed the row.
	ClaimLost semel.EventKind = "claim lost"
	// Waits: for Wait, the transaction of a single message has failed only because of others, such as a lock that
	// another transaction holds or a row that others keep changing. No message is charged with an attempt.
	// Reported after a second, and then once a minute.
	Waits semel.EventKind = "waits for others"
	// Newer: for Wait, a message has been held because a newer release wrote its marker and this release does not
	// know its meaning. No message is charged with an attempt. Reported after a second, and then once a minute.
	Newer semel.EventKind = "written by a newer release"
	// Control: an operator paused, resumed or limited the consumer. Err says what, who and why. Reason is
	// semel.ReasonPaused while the consumer is paused. Messages is the maximum number of messages a second for
	// each process; 0 means no limit.
	Control semel.EventKind = "control"
	// SameContent: a message was applied whose content is equal to that of a recent message of the same source
	// with another id. Its producer may create a new id when it repeats a message. The event changes nothing; see
	// semel.Counts.SameContent.
	SameContent semel.EventKind = "same content under another id"
	// WithoutKey: a message was applied without a leased key because the key store was down, so that a copy would
	// be applied again (consumer.KeyPolicy.FailOpen). Err is the error of the key store.
	WithoutKey semel.EventKind = "applied without a key"
	// NotReEmitted: duplicates asked to send Messages intents again (consumer.Config.ReEmitIntents), but the other
	// system may have forgotten their keys, so they were not sent.
	NotReEmitted semel.EventKind = "intents not sent again"
)
