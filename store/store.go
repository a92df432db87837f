package store

import (
	"context"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/versions"
)

// String is the kind's name.
func (k VerdictKind) String() string {
	return enum.Name([]string{Fresh: "fresh", Seen: "seen", Conflict: "conflict", Busy: "busy", Newer: "newer", ClaimLost: "claim lost", Gap: "gap", Stale: "stale", Behind: "behind", Old: "old"}, k, "VerdictKind")
}

// String says what the store answered: "fresh", "already applied" and so on.
func (v Verdict) String() string {
	switch {
	case v.Kind == Seen:
		return "already " + v.Was.String()
	case v.Kind == Newer:
		return "newer outcome " + strconv.FormatInt(int64(v.Was), 10)
	case v.Known:
		return v.Kind.String() + " known"
	}
	return v.Kind.String()
}

// String is the class's name.
func (c Class) String() string {
	return enum.Name([]string{ClassNone: "none", ClassRetry: "retry", ClassPermanent: "permanent", ClassContended: "contended", ClassDown: "down", ClassAborted: "aborted", ClassClaimLost: "claim lost"}, c, "Class")
}

// String says what became of the commit.
func (o CommitOutcome) String() string {
	return enum.Name([]string{Committed: "committed", NotCommitted: "not committed", CommitUnknown: "unknown"}, o, "CommitOutcome")
}

// TxStore writes markers in the same transaction as the handler's effects. Tx is the
// transaction type that handlers use. A store is safe for concurrent use.
type TxStore[Tx any] interface {
	// Scope returns the number of (consumer, source, generation), and assigns one if there is
	// none. The same arguments always return the same number. Scope runs in its own
	// transaction.
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	// Begin opens a transaction, writes the marks and returns one verdict for each mark.
	// Of marks with the same identity, only the first can be Fresh; the later ones are Seen, or
	// Conflict with another content. Begin writes markers in an order that is the same for every
	// batch, so that batches do not deadlock. A verdict is Fresh exactly when this transaction
	// wrote the mark. After an error no transaction is open and nothing is written. Cancelling
	// ctx ends the call, but not the returned batch.
	Begin(ctx context.Context, o TxOptions, marks []Mark) (Batch[Tx], []Verdict, error)
	// Limits returns what the store cannot do. Limits may be called at any time.
	Limits() Limits
	// Classify returns the class of an error of the store's driver. Classify is also called for
	// a handler's error if the batch does not implement TxStatus. A bare context error is the
	// handler's own; a store wraps those of its calls, for ClassContended or ClassDown.
	Classify(err error) Class
	// IsStoreFault reports whether an error of ClassContended or ClassDown is one that a message cannot
	// have caused: another transaction holds a lock or committed first, or the server lacks something
	// that every transaction needs, such as disk space. A message that fails alone with such a class,
	// again and again while other messages commit, is charged in the end; for a store fault it is
	// never charged, however long the fault lasts. A store that cannot tell returns false.
	IsStoreFault(err error) bool
}

// TxOptions configures the transaction of one batch. With a zero field the store uses its own
// default. A store that does not support an option ignores it.
type TxOptions struct {
	// MarkLock is how long a mark waits for a copy of its message that another transaction
	// is processing.
	MarkLock time.Duration
	// EffectLock is how long a handler's statement waits for a lock.
	EffectLock time.Duration
	// Statement is the server's limit for one statement of a handler. With zero, and where
	// the server's own limit is shorter, the server's limit applies. A statement that
	// exceeds the limit counts as an attempt of its message. The limit must not apply while
	// COMMIT waits for a synchronous standby: the commit would be reported as successful
	// although no standby has it.
	Statement time.Duration
	// Answer is how long the commit of a batch with queued statements waits for one response
	// of the server, in addition to Statement for each statement of that response. If it
	// expires after COMMIT was sent, the outcome of the commit is unknown.
	Answer time.Duration
	// Idle is the time without a statement after which the server ends the transaction.
	Idle time.Duration
	// Lease is the new lease of the claims that a batch begins with, if the batch is not a
	// transaction.
	Lease time.Duration
	// Serial makes the batch hold the lock of Consumer, so that the consumer has one batch
	// at a time.
	Serial   bool
	Consumer string
	// Turn, with Serial, is how long Begin waits for that lock while a handler of another
	// process holds it. Then Begin fails with ClassContended. Zero means no limit.
	Turn time.Duration
	// Working is the generation that the batch works in; see admin.Generations.
	Working generations.Working
}

// Mark is the marker that a batch writes for one identity.
type Mark struct {
	Scope int64
	// Consumer and Source are the names behind Scope. A store that encrypts binds the
	// message's stored data to them; other stores ignore them.
	Consumer, Source string
	// ID has at most semel.MaxID bytes. A store hashes ids that its index cannot hold.
	ID          []byte
	Fingerprint semel.Fingerprint
	// As is the outcome that the marker gets: Applied if a handler runs in this batch, Waiting
	// for a message that is received, or Parked, DeadLettered or Discarded.
	As Outcome
	// Claim, if it has a token, makes the mark a check of that claim: nothing is written,
	// and Scope, ID and Fingerprint are those of the claimed row. The verdict is Fresh if the
	// claim is still valid and ClaimLost if not. With an adopted table, the verdict is Seen if
	// other code has applied the identity. The check takes no lock; Ending.Claims verifies the
	// claim again at the commit.
	Claim Claim
	// Version is the message's position in its stream; the zero value if it has none. Version
	// is also stored in the message's inbox row.
	Version versions.Position
	// Line, if not empty, names the queue in which messages are processed in order, such as a
	// key or a lane; 1 to 256 bytes. All scopes share one namespace of lines, so a name
	// starts with the consumer's name and a zero byte. Only Semel's own stores keep lines.
	Line []byte
	// Age, if not zero, is the time of the message. A fresh mark gets the verdict Old if that
	// time is before the scope's low-water mark, because markers of that age may have been
	// removed. See Reaper.
	Age time.Time
	// Previous, if not nil, is the message's previous identity, which is marked in the same
	// statement. Only Semel's own stores get it.
	Previous *PreviousMark
	// Strict makes an existing marker a Conflict unless its fingerprint can be compared with
	// the mark's and is equal.
	Strict bool
	// Cause identifies the message that produced this one, if the mark receives an intent for
	// another consumer; otherwise nil. The row stores it. See Emitter.
	Cause []byte
}

// Asks reports whether the mark asks if its message may be processed, now or later as an inbox
// row. Other marks only record an outcome.
func (m *Mark) Asks() bool { return m.As == Applied || m.As == Waiting }

// VerdictKind is the kind of a Verdict.
type VerdictKind uint8

// The kinds.
const (
	// Fresh: there was no marker, and this transaction wrote it.
	Fresh VerdictKind = iota + 1
	// Seen: a marker existed already; Was is its outcome.
	Seen
	// Conflict: a marker with another fingerprint exists for the identity.
	Conflict
	// Busy: another transaction is processing a copy and did not end within MarkLock.
	Busy
	// Newer: a marker exists whose outcome this release does not know, because a newer release
	// wrote it. The message is held, because this release cannot tell whether it may be
	// processed. The fingerprint does not matter.
	Newer
	// ClaimLost: the row has another token, or the claim's lease has ended.
	ClaimLost
	// Gap: the mark is written, or the claim is valid, but an earlier version of the stream
	// has not been applied yet.
	Gap
	// Stale: the mark is written, or the claim is valid, but the stream is already at this
	// version or a later one.
	Stale
	// Behind: the mark is written, but an earlier message of its line waits in the inbox.
	Behind
	// Old: the message is older than the retention of the scope's markers. Its marker may have
	// been removed, so the store cannot tell whether it was applied. The mark is written,
	// except by a store with Limits.PartitionedBy.
	Old
)

// Verdict is a store's answer to a mark.
type Verdict struct {
	Kind VerdictKind
	// Was, with Seen and Newer, is the outcome of the existing marker. If this release knows
	// the outcome although Kind is Newer, it does not know another field of the marker.
	Was Outcome
	// Known gives a detail of some kinds. With Conflict: a row with exactly this content exists,
	// so the delivery is another copy of it. With Seen, for a claim: the claim has ended as
	// this process asked. With Stale: the stream is at exactly this version, with another
	// content.
	Known bool
	// Former reports that the marker of the previous identity (Mark.Previous) decided.
	Former bool
	// Missing, with Gap, is the number of versions that are missing before the mark's.
	Missing int64
	// Ahead, with Old, reports that the message's time is too far in the future instead of too
	// old. See Limits.PartitionedBy and MaxClockSkew.
	Ahead bool
}

// Already reports whether a marker with this outcome existed already.
func (v Verdict) Already(o Outcome) bool { return v.Kind == Seen && v.Was == o }

// Batch is an open transaction with its marks. One goroutine calls its methods, except Kill.
type Batch[Tx any] interface {
	// Tx returns the transaction for the handler of mark i, or for a handler of the whole batch
	// if i is All. Tx is valid until the batch ends.
	Tx(i int) Tx
	// Commit removes the marks in e.Trim, writes the rows, ends the claims and commits. The
	// batch has ended afterwards, whatever the result. The caller passes a ctx with a deadline
	// that a stop of the consumer does not cancel.
	Commit(ctx context.Context, e Ending) Result
	// Rollback ends the batch and discards its changes. Rollback cannot fail: if the server
	// does not receive the ROLLBACK, the store closes the connection, which has the same
	// effect.
	Rollback(ctx context.Context)
	// Kill closes the connection of a batch whose handler does not return. Kill may be called
	// from any goroutine, and after the batch has ended.
	Kill()
}

// All is the argument of Batch.Tx for a handler of the whole batch.
const All = -1

// TxStatus is implemented by a Batch that knows the state of its transaction. Without it the engine calls
// TxStore.Classify for a handler's error, and finds out at the commit that a handler ignored an error.
type TxStatus interface {
	// TxAborted reports, without a round trip, whether the transaction can no longer commit. The engine
	// calls it after each handler, so that an error that a handler ignored is charged to the message
	// that caused it.
	TxAborted() bool
	// AbortCause returns the error that aborted the transaction. Classify classifies this error, so
	// that contention and a lost connection are not charged to a message even if the handler ignored
	// them. If the handler committed or rolled back by itself, it returns an error of ClassPermanent.
	// nil means that the cause is unknown; then the message is charged with an attempt.
	AbortCause() error
	// ClassifyHandler returns the class of a handler's error. A handler can return errors of other
	// systems, such as a provider or another database, which look like errors of a store that is down.
	// So it returns ClassContended, ClassDown or ClassAborted only for failures of this batch: its
	// server returned the error, its connection is lost, or its transaction has ended. A batch that
	// does not see its handlers' statements sends a query to its server. If the server responds before
	// ctx ends, the error is the handler's own (ClassRetry); otherwise the store is down (ClassDown).
	// ClassifyHandler is called before the batch ends.
	ClassifyHandler(ctx context.Context, err error) Class
}

// Ending lists what a batch writes when it commits.
type Ending struct {
	// Trim are the indexes of marks to remove, because their handlers did not run. If this batch
	// did not write a mark, because its verdict was Seen or Conflict, removing it does nothing.
	Trim []int
	// Rows are for a store with an Inbox. A store without one refuses them with ClassPermanent.
	Rows []Row
	// Claims end with the commit: each row and its marker change as the event says. If one of
	// the claims is no longer valid, nothing is committed and Result.Class is
	// ClassClaimLost. Only a store with Leases gets claims.
	Claims []ClaimEnding
}

// Row is an inbox row that a batch writes.
type Row struct {
	// Mark is the index of the row's mark.
	Mark int
	// Repeat means that the row exists: the store only increments its number of deliveries.
	// The row is found by identity and, with Conflict, fingerprint.
	Repeat bool
	// Conflict means that the message conflicts with another content of its identity. The key
	// of the row is identity and fingerprint, and the row does not change the marker.
	Conflict bool
	// Surrogate means that the message has no usable identity and the mark's ID was generated
	// for this row.
	Surrogate bool
	// State is the row's first state, such as StateParked or StateDiscarded. The store replaces
	// StateBlocked by StateReceived if nothing blocks the row, and a waiting state by
	// StateBlocked if the row has a line and is not the first of it.
	State    RowState
	Reason   semel.Reason
	Message  *semel.Message
	Attempts int
	// After, with a waiting state, is the delay until the row is due.
	After time.Duration
	// FirstError and LastError are error messages, truncated to MaxErrorText.
	FirstError, LastError string
}

// MaxErrorText is the length in bytes to which the error messages of rows are truncated.
const MaxErrorText = 2048

// CommitOutcome is the outcome of a commit.
type CommitOutcome uint8

// The outcomes of a commit.
const (
	Committed CommitOutcome = iota + 1
	NotCommitted
	// CommitUnknown: the connection was lost after COMMIT was sent. Only another Begin with
	// the same marks can tell whether it was committed, so Begin must not answer while the
	// commit can still take effect. A store without a server undoes it first, or fails.
	CommitUnknown
)

// Result is the result of Batch.Commit.
type Result struct {
	Outcome CommitOutcome
	// Class, if not committed, is the class of Err: ClassContended or ClassDown if ctx ended.
	Class Class
	// Culprit, if not committed, is the mark index of the message that caused the failure,
	// otherwise and if the store cannot tell NoCulprit. With ClassContended and ClassDown it is
	// the message whose statement failed; that message is not charged.
	Culprit int
	Err     error
	// Freed reports that this commit unblocked waiting rows.
	Freed bool
}

// NoCulprit is the Culprit of a failure for which the store cannot name a message.
const NoCulprit = -1

// Class is the class of an error: what the error means for its batch.
type Class uint8

// The classes.
const (
	// ClassNone: there is no error.
	ClassNone Class = iota
	// ClassRetry: a retry may succeed. The failed message is charged with an attempt.
	ClassRetry
	// ClassPermanent: a retry cannot succeed (constraint, type, syntax).
	ClassPermanent
	// ClassContended: serialization failure, deadlock, lock timeout. No message is charged.
	ClassContended
	// ClassDown: the store does not work (connection, read-only, disk full, locked). No message
	// is charged, and the consumer waits until the store works again.
	ClassDown
	// ClassAborted: the transaction was aborted or had ended before the failed statement. An
	// earlier message caused it.
	ClassAborted
	// ClassClaimLost: a claim that the commit should end is no longer valid. No message is
	// charged. The verdicts of the next Begin tell which claim it is.
	ClassClaimLost
)

// Limits contains what a store cannot do for every message and every batch. With the zero value it has no
// limits and stores no steps.
type Limits struct {
	// Batch is the maximum number of messages in a batch, for a store that cannot prevent a handler
	// from committing by itself: such a commit would also commit the marks of the batch's other
	// messages. 0 means no limit.
	Batch int
	// SingleWriter means that the store can have only one open batch at a time. A consumer then begins
	// a batch only after the previous one ended, so that no message is claimed, or counted as started,
	// while it only waits in Begin.
	SingleWriter bool
	// StepOutput is the maximum size of a step's output in bytes. 0 means that the store does not store
	// the completed steps of messages. A store that does has Leases: ClaimEnding.Steps names the steps
	// that are complete with a commit; the row stores them in the same commit as their effects, and
	// later claims return them in StoredRow.Steps.
	StepOutput int
	// Connections is the size of the store's connection pool; 0 means no limit. Other limits, such as
	// the number of concurrent HTTP requests, are kept below it.
	Connections int
	// PartitionedBy, for a store that partitions the markers of one consumer by day, is the kind of ids
	// whose timestamp decides the day, as in a policy file, such as "uuidv7"; FitIdentity rejects other
	// ids. Such a store drops whole days instead of single markers. Retain, Progressed and Advance create
	// partitions ahead. If the id of a mark is older than the oldest partition, or newer than the newest,
	// the mark is not written and gets the verdict Old, provided that it asks (Mark.Asks) and no marker
	// exists. Other marks are written and are not removed with a day.
	PartitionedBy string
	// FitIdentity, for a store whose table of markers cannot hold every identity, such as a column of
	// type uuid, returns the canonical form of an id, so that two spellings of one id have one marker.
	// An error says why the store cannot hold the identity; the message then has no usable identity.
	// nil means that the store holds every identity. FitIdentity is safe for concurrent use.
	FitIdentity func(source, id string) (string, error)
}
