// Package eventkind has the kinds of events that programs of users do not act on; those that
// they do are constants of package semel.
package eventkind

import "github.com/semel-go/semel"

// The kinds.
const (
	// Duplicate: a copy was settled, and no handler ran for it.
	Duplicate semel.EventKind = "duplicate"
	// Skipped: consumer.Config.Filter leaves it to other consumers.
	Skipped   semel.EventKind = "skipped"
	Failed    semel.EventKind = "failed"
	Retry     semel.EventKind = "retry"
	Backstop  semel.EventKind = "backstop"
	Stuck     semel.EventKind = "handler does not end"
	Unknown   semel.EventKind = "commit unknown"
	Committed semel.EventKind = "committed"
	// Contended: a batch met a deadlock, a lock time-out or a
	// serialization failure and runs again; nobody's attempt.
	Contended semel.EventKind = "contended"
	// Serial: because of contention, batches of this consumer run one
	// at a time for Wait.
	Serial semel.EventKind = "serialised"
	// Parallel: they run side by side again.
	Parallel semel.EventKind = "parallel"
	// RetriesWait: more attempts fail than the retry budget has room for; a retry
	// that is planned now begins in Wait. Told once a minute at most.
	RetriesWait semel.EventKind = "retries wait"
	// Trial: as many attempts in a row as Messages says have failed, the last of
	// them with Err; one message is tried at a time.
	Trial semel.EventKind = "tries one at a time"
	// TrialEnds: one has succeeded, and all are tried again.
	TrialEnds semel.EventKind = "tries all again"
	// Busy: for Wait, a message has waited for a copy of it that another
	// process has in flight; nobody's attempt. Told after a second, and then
	// once a minute.
	Busy semel.EventKind = "waits for a copy"
	// ClaimLost: the claim of a message from the inbox does not stand any more:
	// its lease ended and another process has it, or a person acted on its row.
	ClaimLost semel.EventKind = "claim lost"
	// Waits: for Wait, a message that was alone has met nothing but what
	// others hold or do, as a lock or a row that they keep changing; nobody's
	// attempt. Told after a second, and then once a minute.
	Waits semel.EventKind = "waits for others"
	// Newer: for Wait, a message has been held because a newer release wrote
	// its marker and this one does not know what it says; nobody's attempt. Told
	// after a second, and then once a minute.
	Newer semel.EventKind = "written by a newer release"
	// Control: operators want something else of the consumer, as Err says, with who
	// and why. Reason is semel.ReasonPaused while it is paused; Messages is how many a second
	// each of its processes may take, 0 for no limit.
	Control semel.EventKind = "control"
	// SameContent: a message took effect whose content did so not long ago under
	// another id of the same source: its producer may mint ids when it sends again. It
	// decides nothing. See semel.Counts.SameContent.
	SameContent semel.EventKind = "same content under another id"
	// WithoutKey: a message was applied while the store of the leased keys did not work,
	// so that no key says so, and a copy is applied again (consumer.KeyPolicy.FailOpen).
	// Err is what the store said.
	WithoutKey semel.EventKind = "applied without a key"
	// NotReEmitted: as many intents as Messages says were to be sent again because of
	// duplicates (consumer.Config.ReEmitIntents) and are not, since the other side may have forgotten their keys.
	NotReEmitted semel.EventKind = "intents not sent again"
)
