package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
)

// Config configures a consumer. A field with the zero value gets its default. New reports all faults together.
type Config struct {
	// Name identifies the consumer's records in the store. Required, 1 to 255 bytes of printable UTF-8. After
	// a consumer was renamed, it processes every message again.
	Name string
	// Source delivers messages. Run needs a Source, except with StrategyInbox: a run with StrategyInbox and without a
	// Source processes only the inbox. Process needs no Source.
	Source source.Source
	// Identity determines the identity of a message. Required with StrategyMarker and StrategyInbox.
	Identity identity.Identity
	// PreviousIdentity, if set, is how identities were determined before a change. A message is then marked under its
	// identity and its previous identity. PreviousIdentity needs a store with admin.Derivations. PreviousIdentity
	// cannot be combined with Version.
	PreviousIdentity *PreviousIdentity
	// Owner, if not empty, is the owner of the consumer, such as the name of the service. If the owner
	// differs from the owner of the last start, the log reports the difference: two services with one
	// consumer name would each skip messages that the other service has applied. At most 1,024 bytes.
	Owner string
	// Exclusive rejects a start with another owner (semel.ErrForeignOwner) until a person releases the name
	// with semel identity release (admin.Derivations). Exclusive needs Owner.
	Exclusive bool
	// Type is the selector (see identity.By) of the type of a message, such as "header:event-type" or
	// "body:/type". Message.Type returns this type, Filter.Types is compared with this type, and inbox rows
	// store it. If Type is empty, or if the selector finds nothing, the type is the CloudEvents attribute
	// type. If the type of a message cannot be read (a body that is not JSON, a repeated header with
	// different values), the message ends as semel.ReasonMalformed. Type does not affect Identity and
	// Fingerprint.
	Type string
	// Filter selects the messages that are for the consumer. The zero Filter selects all messages.
	Filter Filter
	// OnFiltered says how messages end that Filter excludes: OnFilteredSkip, OnFilteredPark or
	// OnFilteredDeadLetter.
	OnFiltered OnFiltered
	// Fingerprint identifies content. The default is identity.FingerprintBody(), or identity.FingerprintNone() if
	// no markers are written.
	Fingerprint identity.Fingerprinter
	// Strategy is StrategyMarker unless set.
	Strategy Strategy
	// NaturalReason explains why late copies do no harm; required with
	// StrategyNatural: "order: irrelevant", "version guard in the statement".
	NaturalReason string
	// Version, if set, makes the consumer apply the versions of each stream in order. The store must implement
	// admin.Streams.
	Version *VersionPolicy
	// OnConflict is the action for a message whose identity is marked with other content: ActionPark,
	// ActionDeadLetter, ActionHalt or ActionKeepFirst.
	OnConflict Action
	// OnBadIdentity is the action for a message without a usable identity: ActionPark, ActionDeadLetter or
	// ActionHalt.
	OnBadIdentity Action
	// OnPrecondition is the action for a message whose handler returned semel.PreconditionFailed: ActionPark,
	// ActionDeadLetter, ActionDiscard, or ActionRetry.
	OnPrecondition Action
	// OnDuplicate, if set, is called for each duplicate before the duplicate is acked. The parameter result is the
	// result that KeepResult stored for the message, so that a repeated request gets the original answer. The parameter
	// result is nil if no result is stored yet. The function must not change result or m. If the function returns an
	// error, the delivery is not acked and the function is called again after a delay, until it returns nil or the
	// delivery is lost. OnDuplicate is also called for each redelivery. OnDuplicate is never called concurrently, and
	// no message is acked while OnDuplicate runs. ctx ends after 30 s. OnDuplicate needs StrategyMarker or
	// StrategyInbox, and a store that keeps results.
	OnDuplicate func(ctx context.Context, m *semel.Message, result []byte) error
	// ReEmitIntents sends the intents of a message again when a duplicate of the message arrives. Each intent
	// keeps its identity and idempotency key, and is sent again at most once a minute (admin.EmitInterval).
	// The intents become due before the duplicate is acked. If the store fails to make the intents due, Semel
	// tries again after a delay, and the duplicate is not acked. ReEmitIntents needs StrategyMarker or
	// StrategyInbox, and a store with admin.Emitter.
	ReEmitIntents bool
	// SenderWindows is used with ReEmitIntents, and contains, by the sender's name, the Provider.Window of each sender.
	// If the first call of an intent is longer ago than the window, the intent is not sent again, and is counted. If a
	// sender is not listed in SenderWindows, the sender itself checks the window and ends an intent that is too old
	// without a call.
	SenderWindows map[string]time.Duration
	// Lanes is LanesPartition unless set.
	Lanes LaneMode
	// OnParked says what happens to later messages of a key or partition while an earlier message of that key or
	// partition waits or is parked in the inbox. The default of OnParked depends on the store.
	OnParked OnParked
	// Canary, if not 0, runs the handler of one message in Canary twice on purpose: the transaction of the first success
	// is rolled back, and the handler runs again at once. An effect outside the transaction then happens twice, so that
	// a unique key or a reconciliation shows it before a crash does. A hash of the identity's source and ID chooses the
	// messages, so each process chooses the same messages. The rerun counts as no attempt; Counts.Rerun counts it. With
	// NewBatch, the whole batch runs again. Canary is 1 (every message) to 1,000,000,000; the default 0 means no
	// message. Canary needs StrategyMarker or StrategyInbox, and a handler that runs in a transaction.
	Canary int
	// Workers is the number of batches that run in parallel, 1 to 1,024; default 8.
	Workers int
	// Timeout is the maximum duration of a handler run; default 30 s. A handler that runs longer loses its
	// connection, and its lanes wait until the handler returns. If the database supports it, the server also
	// ends each statement after Timeout, including statements that a handler queued. A statement that the
	// server ends counts as an attempt of the message.
	Timeout time.Duration
	// Batch limits the size of a transaction.
	Batch BatchLimits
	// MaxInMemoryWait is the maximum time that a message waits in memory for a retry; default 10 s. A message with a
	// longer delay waits in the inbox.
	MaxInMemoryWait time.Duration
	// MaxUnacked limits the messages that are fetched and not yet acked.
	MaxUnacked source.Bound
	// MaxBody is the maximum size of a body in bytes, 64 KiB to 1 GiB; default 16 MiB. A message with a
	// larger body ends as OnBadIdentity says, with semel.ReasonTooLarge. The store gets only the first 64 KiB
	// of the body, and the header semel-length with the length of the body. A source can have a smaller limit
	// of its own.
	MaxBody int64
	// Drain is how long a stop waits for running handlers; default 20 s. After Drain, the contexts of the
	// handlers are cancelled and their connections closed, and the run ends within 5 s more.
	Drain time.Duration
	// Retry configures retries and their limits.
	Retry RetryPolicy
	// AckOnReceipt is used with StrategyInbox. If AckOnReceipt is true, a message is acked as soon as the message is
	// stored in the inbox. A worker applies the message later, so the backlog is in the inbox and not in the broker.
	// Without AckOnReceipt, a message is acked when its effect is committed or the message is parked.
	AckOnReceipt bool
	// Inbox configures the processing of messages that wait in the store's inbox: messages received there, and
	// retries with a delay longer than MaxInMemoryWait.
	Inbox InboxPolicy
	// Provider is used with NewLeased, NewKeyed and NewCalling, and describes the system that handlers call.
	Provider Provider
	// Replay, if set, means that the messages from the source are a replay. semel.Message.Replay returns the
	// replay of each message, also for messages that wait in the inbox. A message that was in the inbox
	// before belongs to the replay that stored the message, if any. ReEmitIntents must be false, because most
	// messages of a replay are duplicates.
	Replay *semel.Replay
	// Generation, if set, is the generation in which the consumer works. Generations are for effects that can
	// be rebuilt beside the active effects; see InGenerations. The store must implement admin.Generations.
	// Generation cannot be used with TryMark and Accept.
	Generation *Generation
	// Retention is how long markers and ended messages are kept. With the zero value, markers and ended messages are
	// kept forever.
	Retention RetentionPolicy
	// IdleExit, if positive, ends Run after the source has had no messages, and no message was in memory, for the
	// duration IdleExit. A failing source does not count as idle. A source that has not assigned a lane yet gets one
	// minute. If the source has source.Info.Idle, Run calls Info.Idle before the run ends; see Consumer.Unfinished. Run
	// also ends while messages wait because a newer release wrote their markers, and while later messages of their
	// lanes wait for these messages. Messages that wait for a newer release are not acked, Unfinished returns their
	// lanes, and Run returns semel.ErrUnfinished.
	IdleExit time.Duration
	// MayEnd, if not nil, is called before Run ends because of IdleExit. MayEnd must return false if further
	// messages may arrive although source and store have none, such as intents of another consumer that still
	// runs. After a result of false, Run calls MayEnd again after IdleExit. After the first result of true,
	// Run calls MayEnd once more. MayEnd must not block.
	MayEnd func() bool
	// CommitTimeout is how long a commit may take before its outcome counts as unknown; default 30 s. Statements that
	// handlers have queued are sent with the commit, and each statement may take Timeout in addition.
	CommitTimeout time.Duration
	// Logger receives the consumer's log; default slog.Default(). No payloads or secrets are logged. At most 30 lines a
	// minute with the same message are logged, and at most 10 lines a minute with the same reason. The next logged line
	// contains the number of suppressed lines. Lines of level debug are not limited.
	Logger *slog.Logger
	// AuditKey is the key for the hashes in the chain of audit records of operators' changes (admin.Auditor). AuditKey
	// has at least 32 bytes and must be the same in all processes of a store; an empty AuditKey means no key. A chain
	// of audit records that has records with a key cannot continue without a key. A run with a key does not begin a
	// chain. To begin a chain, add one audit record with the store's method Seal (admin.Sealing) after the first
	// Migrate, or run semel migrate up.
	AuditKey []byte
	// Observers get the events of the consumer. An observer that implements measure.Meter also gets
	// measurements. At most one observer may implement measure.Tracer, which creates spans.
	Observers []semel.Observer
	// Recorder, if set, records the engine's last events and decisions.
	Recorder *Recorder
}

// InboxPolicy configures claims of inbox rows. Any process of the consumer claims rows. A claim is valid for
// a lease by the store's clock, and the lease is extended while a handler runs.
type InboxPolicy struct {
	// Lease is the duration of a claim, 1 s to 1 h; default 30 s. If a process crashes, its rows wait until
	// their leases expire before another process claims them.
	Lease time.Duration
	// Poll is the maximum interval at which an idle consumer asks the store for due rows, 10 ms to 1 min; default
	// 1 s.
	Poll time.Duration
	// MaxCrashes is the number of processes that may crash while they handle one message, 1 to 100 (default 3). After
	// MaxCrashes crashes, the message is parked with the reason "kills its process".
	MaxCrashes int
}

// BatchLimits limit a batch, which is one transaction. A batch never waits until it is full.
type BatchLimits struct {
	// MaxSize is the maximum number of messages in a batch, 1 to 10,000; default 500.
	MaxSize int
	// MaxTime is how long the handlers of one batch may run before the batch commits; default 50 ms.
	MaxTime time.Duration
}

// RetryPolicy configures retries. The delay before a retry is random, between 0 and a limit. The limit is
// InitialDelay at first and doubles with each retry up to MaxDelay ("full jitter").
type RetryPolicy struct {
	// MaxAttempts is the maximum number of runs of a handler for a message; default 10.
	MaxAttempts int
	// InitialDelay is the maximum of the first delay; default 1 s.
	InitialDelay time.Duration
	// MaxDelay is the maximum delay; the default is MaxInMemoryWait. A longer MaxDelay needs a strategy with
	// markers and a store with an inbox (store.Leases), where the message waits.
	MaxDelay time.Duration
	// OnExhausted is the action for a message that failed permanently or failed MaxAttempts times:
	// ActionPark, ActionDeadLetter or ActionHalt.
	OnExhausted Action
	// Budget limits the retries of all messages together.
	Budget RetryBudget
	// SerialAfter is a number of consecutive failed attempts of any messages; 1 to 1,000,000; default 20. After
	// SerialAfter failed attempts, Semel tries one message at a time, at the rate of Budget.PerSecond, until an attempt
	// succeeds. Many consecutive failures are probably caused by a system that the handler calls; trying all messages
	// would then use up the attempts of all messages. Permanent failures do not count. SerialAfter does not apply to
	// Process.
	SerialAfter int
	// BreakerThreshold is the number of consecutive messages that must fail permanently (by a permanent error, a failed
	// precondition, or their last attempt) before the circuit breaker opens. While the breaker is open, no message is
	// fetched or claimed, the consumer is not ready, and one message is tried at a time, after delays of 1 s to 1 min,
	// until an attempt succeeds. Messages that fail while the breaker is open wait until they have had MaxAttempts
	// attempts, and at least 5. BreakerThreshold is 1 to 1,000,000. If BreakerThreshold is not set, the breaker opens
	// after 20 failures, and only while no handler has succeeded since Run began, so that one bad producer cannot stop
	// a working consumer. Process has no breaker.
	BreakerThreshold int
	// DisableBreaker keeps the breaker closed.
	DisableBreaker bool
}

// RetryBudget limits the rate of retries, so that many simultaneous failures do not cause a flood of retries. The
// budget is PerSecond retries a second, plus Percent of the number of first attempts. Unused budget is saved, up to one
// minute of PerSecond. A retry above the budget is delayed; the delay does not count as a failure. Each process has its
// own retry budget.
type RetryBudget struct {
	// PerSecond is the number of retries a second, 1 to 1,000,000; default 10.
	PerSecond int
	// Percent is the number of retries per 100 first attempts, 1 to 1,000; default 10.
	Percent int
}
