package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
)

// Config is a consumer's policy. The zero value of a field is its default;
// New reports every fault at once.
type Config struct {
	// Name scopes every record of the consumer. Required, 1 to 255 bytes of
	// printable UTF-8. Renaming a consumer makes every message fresh.
	Name string
	// Source delivers. Required for Run, but with StrategyInbox, which may have only
	// its inbox; Process needs none.
	Source source.Source
	// Identity finds a message's identity. Required with StrategyMarker and
	// StrategyInbox.
	Identity identity.Identity
	// PreviousIdentity, when set, is how Identity was found before it was changed. Messages
	// are then marked under both. It needs a store with admin.Derivations, and cannot be used
	// with Version.
	PreviousIdentity *PreviousIdentity
	// Owner, if not empty, is whose consumer this is, such as the name of the service or of
	// the types that it handles: a start with another owner than the last one's is told in
	// the log, since two services under one name would take each other's messages for their
	// own. At most 1,024 bytes.
	Owner string
	// Exclusive refuses such a start (semel.ErrForeignOwner), until a person has released
	// the name (semel consumers identity release, admin.Derivations). Needs Owner.
	Exclusive bool
	// Type is a selector (see identity.By) of the place where producers write the
	// type of a message, such as "header:event-type" or "body:/type". Handlers get this type
	// from Message.Type, Filter.Types is compared with it, and rows of the inbox store it. By
	// default, and for a message in which the selector finds nothing, the type is the
	// attribute type of CloudEvents. A message whose type cannot be read (a body that is
	// no JSON, a header that stands twice with different values) is set aside as
	// semel.ReasonMalformed. Identity and Fingerprint do not see it.
	Type string
	// Filter selects the messages of this consumer. The default is all.
	Filter Filter
	// OnFiltered ends the messages that Filter excludes: OnFilteredSkip, OnFilteredPark or
	// OnFilteredDeadLetter.
	OnFiltered OnFiltered
	// Fingerprint recognises content; the default is
	// identity.FingerprintBody(), where no marker is written identity.FingerprintNone().
	Fingerprint identity.Fingerprinter
	// Strategy is StrategyMarker unless set.
	Strategy Strategy
	// NaturalReason explains why late copies do no harm; required with
	// StrategyNatural: "order: irrelevant", "version guard in the statement".
	NaturalReason string
	// Version, when set, lets the versions of one aggregate take effect in their order.
	// Its store keeps streams (admin.Streams).
	Version *VersionPolicy
	// OnConflict ends a message whose identity was marked with other content:
	// ActionPark, ActionDeadLetter, ActionHalt or ActionKeepFirst.
	OnConflict Action
	// OnBadIdentity ends a message without usable identity: ActionPark,
	// ActionDeadLetter or ActionHalt.
	OnBadIdentity Action
	// OnPrecondition ends a message whose handler returned semel.PreconditionFailed:
	// ActionPark, ActionDeadLetter, ActionDiscard, or ActionRetry.
	OnPrecondition Action
	// OnDuplicate, when set, is called for each delivery that is a duplicate, before it is
	// settled, with what KeepResult has kept for its message: to answer whoever asks again.
	// result is nil where nothing is kept, or not yet; it and m must not be changed. An
	// error leaves the delivery unsettled, and it is called again after a wait, until it
	// returns nil or the delivery is lost. It is called again, too, for a delivery that
	// comes again. One at a time: as long as it runs, nothing is settled. ctx ends after
	// 30 s. It needs StrategyMarker or StrategyInbox, and a store that keeps results.
	OnDuplicate func(ctx context.Context, m *semel.Message, result []byte) error
	// ReEmitIntents sends the intents of a message again when a duplicate of the message
	// arrives, each with its identity and idempotency key and at most once a minute
	// (admin.EmitInterval). They become due before the duplicate is acked. If that fails, the
	// duplicate stays unacked, and it is tried again after a wait. It needs StrategyMarker or
	// StrategyInbox, and a store with admin.Emitter.
	ReEmitIntents bool
	// SenderWindows, with ReEmitIntents, are Provider.Window of senders, by their names:
	// an intent that was called for first so long ago is left, and counted. A sender that is
	// not named finds by itself that it is too late, and ends the intent without a call.
	SenderWindows map[string]time.Duration
	// Lanes is LanesPartition unless set.
	Lanes LaneMode
	// OnParked says what becomes of the messages of a key, or a partition, behind one that
	// waits in the inbox; its zero value depends on the store.
	OnParked OnParked
	// Workers is how many batches run at once, 1 to 1,024; default 8.
	Workers int
	// Timeout is of one handler run, default 30 s. A handler that goes on
	// after it loses its connection; its lanes wait until it returns. Where the
	// store's server can, it ends each statement after as long, also one that a
	// handler only queued: an attempt of its message.
	Timeout time.Duration
	// Batch bounds a transaction.
	Batch BatchLimits
	// MaxInMemoryWait is the longest time that a message waits in memory for a retry; default
	// 10 s. Longer waits are kept in the inbox.
	MaxInMemoryWait time.Duration
	// MaxUnacked limits the messages that are fetched and not yet acked.
	MaxUnacked source.Bound
	// MaxBody is the longest body in bytes that is processed, 64 KiB to 1 GiB;
	// default 16 MiB. No store sees a longer one: the message ends as
	// OnBadIdentity says, as semel.ReasonTooLarge, with its first 64 KiB and its length
	// in the header semel-length. A source's own limit can only be smaller.
	MaxBody int64
	// Drain is how long a stop waits for running handlers; default 20 s. What has
	// not ended then is cancelled, and cut: the run ends within 5 s more.
	Drain time.Duration
	// Retry says when to try again and what then.
	Retry RetryPolicy
	// AckOnReceipt, with StrategyInbox, acks a message as soon as it is stored in the inbox. A
	// worker applies its effect later, and the backlog is in the inbox, not at the broker.
	// Otherwise a message is acked when its effect is committed or the message is parked.
	AckOnReceipt bool
	// Inbox says how messages that wait in the store's inbox are worked on: those
	// received there, and those whose wait is longer than MaxInMemoryWait.
	Inbox InboxPolicy
	// Provider, with NewLeased, NewKeyed and NewCalling, says what is known of the other side that handlers call.
	Provider Provider
	// Replay, if set, says that what the consumer takes from its source is a replay, which
	// each message knows then (semel.Message.Replay), and keeps in the inbox. What it takes
	// from the inbox is part of that replay alone that left it there. ReEmitIntents must be
	// false beside it: most of a replay are duplicates.
	Replay *semel.Replay
	// Generation, if set, is the one that the consumer works in, on a store that can
	// (admin.Generations), for effects that can be built anew beside the live ones; see
	// InGenerations. Not with TryMark and Accept.
	Generation *Generation
	// Retention says how long what has ended is remembered; the zero value: for ever.
	Retention RetentionPolicy
	// IdleExit, when positive, ends Run when the source has been empty and
	// nothing has been in memory for so long. A source that fails is not empty;
	// one that has given no lane yet has a minute for it. A source that knows
	// what is there (source.Info.Idle) is asked before; see Consumer.Unfinished. Messages that
	// are held because a newer release wrote their markers, and what waits for
	// them, keep no run from ending: nothing of them is settled, Unfinished names their
	// lanes, and Run returns semel.ErrUnfinished.
	IdleExit time.Duration
	// MayEnd, where it is not nil, is asked before Run ends for IdleExit. False: something
	// may come that neither the source nor the store knows of yet, as the intents of a
	// consumer that still runs. It is asked again after IdleExit, and after its first true once
	// more. It must not wait.
	MayEnd func() bool
	// CommitTimeout is after how long without an answer a commit's outcome is
	// unknown; default 30 s. Statements that handlers queued, which are sent with
	// the commit, have Timeout each in addition.
	CommitTimeout time.Duration
	// Logger gets the consumer's log; default slog.Default(). No payload and
	// no secret is logged. Of one event (the text of a line) there are at most 30 lines a
	// minute, and 10 with one reason; the next line says how many were left out. Lines of the
	// level debug are not bounded.
	Logger *slog.Logger
	// AuditKey is what acts of operators are sealed under (admin.Auditor), at least 32
	// bytes, the same for all processes of a store; empty: under no key. A chain with lines
	// under a key does not go on without one. With a key a run does not begin a chain: seal an
	// act once behind the first Migrate, with the store's Seal (admin.Sealing), or run
	// semel migrate up.
	AuditKey []byte
	// Observers watch. One that implements measure.Meter measures, too, and at most one of
	// them may implement measure.Tracer, which makes spans.
	Observers []semel.Observer
	// Recorder, if set, keeps what the engine heard and decided last.
	Recorder *Recorder
}

// InboxPolicy says how the rows of an inbox are claimed. They are claimed by any
// process of this consumer, with a lease by the store's clock, which is extended
// while a handler runs.
type InboxPolicy struct {
	// Lease is how long a claim lasts that nobody extends, 1 s to 1 h; default 30 s.
	// As long as that the row of a process that died waits for another.
	Lease time.Duration
	// Poll is how long an idle consumer waits at most before it asks the store
	// again for what is due, 10 ms to 1 min; default 1 s.
	Poll time.Duration
	// MaxCrashes is how many processes may die while they handle one message, 1 to 100;
	// default 3. Then the message is parked (reason "kills its process").
	MaxCrashes int
}

// BatchLimits bound a transaction; a batch never waits to fill.
type BatchLimits struct {
	// MaxSize is the most messages of a batch, 1 to 10,000; default 500.
	MaxSize int
	// MaxTime is how long handlers of one batch may run before the batch commits;
	// default 50 ms.
	MaxTime time.Duration
}

// RetryPolicy says how a failed message is retried: after a random delay of up to
// InitialDelay, which doubles up to MaxDelay ("full jitter").
type RetryPolicy struct {
	// MaxAttempts is how often a handler runs at most; default 10.
	MaxAttempts int
	// InitialDelay is the longest first delay; default 1 s.
	InitialDelay time.Duration
	// MaxDelay is the longest delay; the default is MaxInMemoryWait. A longer one than
	// MaxInMemoryWait needs a store with an inbox (store.Leases), where the message waits.
	MaxDelay time.Duration
	// OnExhausted ends a message that has had MaxAttempts or that failed permanently:
	// ActionPark, ActionDeadLetter or ActionHalt.
	OnExhausted Action
	// Budget bounds the retries of all messages together.
	Budget RetryBudget
	// SerialAfter is after how many failed attempts in a row, of any messages, only one
	// message is tried at a time, and after a failure no sooner than Budget.PerSecond
	// allows, until one succeeds: what the handler calls is likely away, and trying
	// all would spend their attempts. 1 to 1,000,000; default 20. What fails for good
	// does not count; Process is as concurrent as its callers.
	SerialAfter int
	// BreakerThreshold is how many messages in a row must fail for good (by a permanent
	// failure, a failed precondition, or their last attempt) to open a circuit breaker: nothing
	// more is fetched or claimed, the consumer is not ready, and one message is tried at a
	// time, after waits of 1 s up to 1 min, until one succeeds. Messages that fail meanwhile
	// wait, until they have had MaxAttempts, and at least 5. 1 to 1,000,000. Unless it is set,
	// the breaker opens after 20, and only while nothing has succeeded since
	// Run began: one bad producer cannot stop a consumer that works. Process has no breaker.
	BreakerThreshold int
	// DisableBreaker keeps the breaker closed.
	DisableBreaker bool
}

// RetryBudget bounds retries, so that many that fail together are no storm: PerSecond
// in a second, and Percent of the first attempts. What is not used is kept, up to what
// a minute of PerSecond gives. A retry beyond it is planned for later, which is no
// failure; it waits as any other. Each process has a budget of its own.
type RetryBudget struct {
	// PerSecond is 1 to 1,000,000; default 10.
	PerSecond int
	// Percent is 1 to 1,000; default 10.
	Percent int
}
