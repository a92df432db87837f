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

// String returns the kind's name.
func (k VerdictKind) String() string {
	return enum.Name([]string{Fresh: "fresh", Seen: "seen", Conflict: "conflict", Busy: "busy", Newer: "newer", ClaimLost: "claim lost", Gap: "gap", Stale: "stale", Behind: "behind", Old: "old"}, k, "VerdictKind")
}

// String returns a text for the Verdict: "fresh", "already applied" and so on.
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

// String returns the class's name.
func (c Class) String() string {
	return enum.Name([]string{ClassNone: "none", ClassRetry: "retry", ClassPermanent: "permanent", ClassContended: "contended", ClassDown: "down", ClassAborted: "aborted", ClassClaimLost: "claim lost"}, c, "Class")
}

// String describes the outcome of the commit.
func (o CommitOutcome) String() string {
	return enum.Name([]string{Committed: "committed", NotCommitted: "not committed", CommitUnknown: "unknown"}, o, "CommitOutcome")
}

// TxStore writes markers in the same transaction as the handler's effects. Tx is the
// transaction type that handlers use. A store is safe for concurrent use.
type TxStore[Tx any] interface {
	// Scope returns the number of the triple (consumer, source, generation). If the triple has no number, Scope assigns
	// one. For the same arguments, Scope always returns the same number. Scope runs in a transaction of its own.
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	// Begin opens a transaction, writes the markers and returns one Verdict for each mark. If several marks have the
	// same identity, only the first can be Fresh; the later marks are Seen, or Conflict if they have other content.
	// Begin writes markers in an order that is the same for every batch, so that batches do not deadlock. A Verdict is
	// Fresh exactly when the transaction wrote the marker. After an error of Begin, no transaction is open and no
	// marker is written. Cancelling ctx ends the call, but not the returned batch.
	Begin(ctx context.Context, o TxOptions, marks []Mark) (Batch[Tx], []Verdict, error)
	// Limits returns the limits of the store. Limits may be called at any time.
	Limits() Limits
	// Classify returns the class of an error of the store's driver. If the batch does not implement TxStatus, Classify
	// is also called for a handler's error. An unwrapped context error counts as an error of the handler. A store must
	// therefore wrap the context errors of its own calls that mean ClassContended or ClassDown.
	Classify(err error) Class
	// IsStoreFault is called for an error of ClassContended or ClassDown. IsStoreFault reports whether a message cannot
	// have caused the error: another transaction has a lock or committed first, or the server lacks a resource that
	// every transaction needs, such as disk space. If a message that is alone in its batch fails with ClassContended or
	// ClassDown again and again, while other messages commit, the failures finally count as attempts of the message. A
	// store fault never counts as an attempt, however long the fault lasts. If a store cannot distinguish store faults,
	// IsStoreFault returns false.
	IsStoreFault(err error) bool
}

// TxOptions configures the transaction of one batch. If a field is zero, the store uses its own default. A
// store ignores options that it does not support.
type TxOptions struct {
	// MarkLock is how long the writing of a marker waits for another transaction that is processing a copy of
	// the message.
	MarkLock time.Duration
	// EffectLock is how long a handler's statement waits for a lock.
	EffectLock time.Duration
	// Statement is the server's time limit for one statement of a handler. If Statement is zero, or if the server's own
	// limit is shorter, the server's limit applies. A statement that exceeds the limit counts as an attempt of its
	// message. The limit must not apply while COMMIT waits for a synchronous standby, because the server would then
	// report the commit as successful although no standby has it.
	Statement time.Duration
	// Answer is how long the commit of a batch with queued statements waits for one response of the server. Statement
	// is added for each statement in that response. If the time Answer expires after COMMIT was sent, the outcome of
	// the commit is unknown.
	Answer time.Duration
	// Idle is the time without a statement after which the server ends the transaction.
	Idle time.Duration
	// Lease is the new lease of the claims in a batch, if the batch is not a transaction.
	Lease time.Duration
	// Serial makes the batch take the lock of Consumer, so that the consumer has only one batch at a time.
	Serial   bool
	Consumer string
	// Turn is used with Serial, and is how long Begin waits for the consumer's lock while a handler of another process
	// has that lock. After the time Turn, Begin fails with ClassContended. Zero means no limit.
	Turn time.Duration
	// Working is the generation in which the batch works; see admin.Generations.
	Working generations.Working
}

// Mark describes the marker that a batch writes for one identity.
type Mark struct {
	Scope int64
	// Consumer and Source are the names that belong to Scope. A store that encrypts binds the message's stored data to
	// the names of consumer and source; other stores ignore the names.
	Consumer, Source string
	// ID has at most semel.MaxID bytes. If an id is too long for the index of a store, the store hashes the id.
	ID          []byte
	Fingerprint semel.Fingerprint
	// As is the outcome in the marker: Applied if a handler runs in this batch, Waiting for a message that is
	// received, or Parked, DeadLettered or Discarded.
	As Outcome
	// Claim, if it has a token, turns the mark into a check of that claim: no marker is written, and Scope, ID and
	// Fingerprint are the values of the claimed row. The Verdict is Fresh if the claim is still valid, and ClaimLost if
	// it is not. If the store uses the user's own table of markers and other code has applied the identity, the Verdict
	// is Seen. The check takes no lock; Ending.Claims checks the claim again at the commit.
	Claim Claim
	// Version is the message's position in its stream, or the zero value if the message has no version. The message's
	// inbox row also stores Version.
	Version versions.Position
	// Line, if not empty, is the name of a line: a queue of messages that are processed in order, such as the messages
	// of a key or of a lane. The name has 1 to 256 bytes. All scopes share one namespace of lines, so a name starts
	// with the consumer's name and a zero byte. Only Semel's own stores have lines.
	Line []byte
	// Age, if not zero, is the time of the message. If Age is before the scope's low-water mark, the answer for a new
	// message is Old, because markers of that age may have been removed. See Reaper.
	Age time.Time
	// Previous, if not nil, is the message's identity under the previous derivation; only its Scope, ID and
	// Strict are set. The store writes a marker for Previous together with the marker of the Mark, with the
	// same fingerprint and outcome, and removes both together. The Mark is Fresh only if neither identity had a
	// marker.
	//
	//   - If a marker of the Mark's own identity exists, its verdict counts. The marker that the batch wrote
	//     for the previous identity is removed.
	//   - If only the previous identity has a marker, the verdict of that marker counts: Seen, Newer, Busy, or Conflict
	//     with Known for rows of either identity. The marker that the batch wrote for the Mark's own identity is
	//     removed.
	//
	// A Repeat is counted in the row of the identity whose verdict counts. If two marks of a batch have an
	// identity in common, and the batch itself wrote the marker for the first of them, the second is Busy. Only
	// Semel's own stores get Previous.
	Previous *Mark
	// Strict makes an existing marker a Conflict, unless its fingerprint can be compared with the mark's
	// fingerprint and is equal.
	Strict bool
	// Cause, if the mark receives an intent for another consumer, identifies the message whose handler wrote the
	// intent. For other marks, Cause is nil. The row stores Cause. See Emitter.
	Cause []byte
}

// Asks reports whether the store's answer decides if the message may be processed, now or later as an inbox row. A mark
// for which Asks is false only records an outcome.
func (m *Mark) Asks() bool { return m.As == Applied || m.As == Waiting }

// VerdictKind is the kind of a Verdict.
type VerdictKind uint8

// The kinds of verdicts.
const (
	// Fresh means that there was no marker, and that the transaction wrote the marker.
	Fresh VerdictKind = iota + 1
	// Seen means that a marker existed already; Was is its outcome.
	Seen
	// Conflict means that the identity has a marker with another fingerprint.
	Conflict
	// Busy means that another transaction is processing a copy of the message and did not end within MarkLock.
	Busy
	// Newer means that a marker exists whose outcome this release does not know, because a newer release wrote the
	// marker. The message waits in the consumer, because this release does not know whether the message may be
	// processed. For Newer, the store does not compare fingerprints.
	Newer
	// ClaimLost means that the row has another token, or that the claim's lease has ended.
	ClaimLost
	// Gap means that the marker is written, or the claim is valid, but an earlier version of the stream has
	// not been applied yet.
	Gap
	// Stale means that the marker is written, or the claim is valid, but the stream is already at the version of the
	// message or at a later version.
	Stale
	// Behind means that the marker is written, but an earlier message of the same line (the queue of a key or lane)
	// waits in the inbox.
	Behind
	// Old means that the message is older than the retention of the scope's markers. The marker of the message may have
	// been removed, so the store does not know whether the message was applied. The marker is written, except by a
	// store with Limits.PartitionedBy.
	Old
)

// Verdict is the store's answer to a mark.
type Verdict struct {
	Kind VerdictKind
	// Was is set with Seen and Newer, and is the outcome of the existing marker. If Kind is Newer although this release
	// knows the outcome, another field of the marker is unknown to this release.
	Was Outcome
	// Known adds a detail to three kinds of Verdict:
	//
	//   - Conflict: a row with exactly this content exists, so the delivery is another copy of that content.
	//   - Seen, for a claim: the claim has ended as this process requested.
	//   - Stale: the stream is at exactly this version, with other content.
	Known bool
	// Former is true if the marker of the previous identity (Mark.Previous) decided.
	Former bool
	// Missing is set with Gap, and is the number of missing versions before the version of the mark.
	Missing int64
	// Ahead is used with Old. Ahead is true if the time of the message is too far in the future, and false if the
	// message is too old. See Limits.PartitionedBy and MaxClockSkew.
	Ahead bool
}

// Already reports whether a marker with the outcome o existed already.
func (v Verdict) Already(o Outcome) bool { return v.Kind == Seen && v.Was == o }

// Batch is an open transaction with its markers. Only one goroutine calls the methods of a Batch, except Kill.
type Batch[Tx any] interface {
	// Tx returns the transaction for the handler of mark i. If i is All, Tx returns the transaction for a handler of
	// the whole batch. Tx is valid until the batch ends.
	Tx(i int) Tx
	// Commit removes the markers in e.Trim, writes the rows, ends the claims and commits. After Commit the batch has
	// ended, whether or not Commit succeeded. The caller passes a ctx with a deadline. A stop of the consumer does not
	// cancel this ctx.
	Commit(ctx context.Context, e Ending) Result
	// Rollback ends the batch and discards its changes. Rollback cannot fail: if the server does not receive
	// the ROLLBACK, the store closes the connection, which has the same effect.
	Rollback(ctx context.Context)
	// Kill closes the connection of a batch whose handler does not return. Kill may be called
	// from any goroutine, and after the batch has ended.
	Kill()
}

// All is the argument of Batch.Tx for a handler of the whole batch.
const All = -1

// TxStatus is implemented by a Batch that knows the state of its transaction. For a Batch without TxStatus, the
// consumer calls TxStore.Classify for a handler's error, and detects an error that a handler ignored only at the
// commit.
type TxStatus interface {
	// TxAborted reports, without a round trip, whether the transaction can no longer commit. The consumer calls
	// TxAborted after each handler. So if a handler ignores an error, the error counts as an attempt of the message
	// that caused it.
	TxAborted() bool
	// AbortCause returns the error that aborted the transaction. Classify classifies the error, so that contention and
	// a lost connection do not count as an attempt of a message, even if the handler ignored them. If the handler
	// committed or rolled back the transaction, AbortCause returns an error of ClassPermanent. A nil error means that
	// the cause is unknown; the abort then counts as an attempt of the message.
	AbortCause() error
	// ClassifyHandler returns the class of a handler's error. A handler can return errors of other systems, such as a
	// provider or another database, which may look like errors of a store that is down. So ClassifyHandler returns
	// ClassContended, ClassDown or ClassAborted only for failures of the batch: the store's server returned the error,
	// the connection is lost, or the transaction has ended. A batch that does not see its handlers' statements sends a
	// query to its server. If the server responds before ctx ends, the error belongs to the handler (ClassRetry); if
	// not, the store is down (ClassDown). ClassifyHandler is called before the batch ends.
	ClassifyHandler(ctx context.Context, err error) Class
}

// Ending lists what a batch writes when it commits.
type Ending struct {
	// Trim has the indexes of marks whose markers must be removed, because their handlers did not run. If the batch did
	// not write a marker, because the Verdict was Seen or Conflict, no marker is removed for that mark.
	Trim []int
	// Rows has the inbox rows to write, for a store with an Inbox. A store without an Inbox rejects rows with
	// ClassPermanent.
	Rows []Row
	// Claims has the claims that end with the commit: each row gets the state of its ClaimEnding, and its marker the
	// outcome of that state. If one of the claims is no longer valid, nothing is committed, and Result.Class is
	// ClassClaimLost. Only a store with Leases gets claims.
	Claims []ClaimEnding
}

// Row is an inbox row that a batch writes.
type Row struct {
	// Mark is the index of the mark that belongs to the row.
	Mark int
	// Repeat is true if the row exists: the store only increments its number of deliveries. The store finds
	// the row by identity, and with Conflict also by fingerprint.
	Repeat bool
	// Conflict is true if the message conflicts with other content of the same identity. The key of a conflict's row
	// consists of identity and fingerprint, and the row does not change the marker.
	Conflict bool
	// Surrogate is true if the message has no usable identity and the mark's ID was generated for the row.
	Surrogate bool
	// State is the first state of the row, such as StateParked or StateDiscarded. If nothing blocks the row, the store
	// replaces StateBlocked by StateReceived. If the row is in a line (the queue of a key or lane) and is not the first
	// row of that line, the store replaces a waiting state by StateBlocked.
	State    RowState
	Reason   semel.Reason
	Message  *semel.Message
	Attempts int
	// After is used with a waiting state, and is the delay until the row can be claimed.
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
	// CommitUnknown means that the connection was lost after COMMIT was sent. Only another Begin with the same marks
	// can find out whether the batch was committed. So Begin must not answer while the earlier commit can still take
	// effect. A store without a server undoes the earlier commit first, or fails.
	CommitUnknown
)

// Result is the result of Batch.Commit.
type Result struct {
	Outcome CommitOutcome
	// Class, if the batch was not committed, is the class of Err. If ctx ended, Class is ClassContended or ClassDown.
	Class Class
	// Culprit, if the batch was not committed, is the mark index of the message that caused the failure. If the batch
	// was committed or the store cannot name a message, Culprit is NoCulprit. With ClassContended and ClassDown,
	// Culprit is the message whose statement failed; the failure does not count as an attempt of that message.
	Culprit int
	Err     error
	// Freed is true if the commit unblocked waiting rows.
	Freed bool
}

// NoCulprit is the Culprit of a failure for which the store cannot name a message.
const NoCulprit = -1

// Class is the class of an error: what the error means for its batch.
type Class uint8

// The classes of errors.
const (
	// ClassNone means that there is no error.
	ClassNone Class = iota
	// ClassRetry means that a retry may succeed. The error counts as an attempt of the failed message.
	ClassRetry
	// ClassPermanent means that a retry cannot succeed (constraint, type, syntax).
	ClassPermanent
	// ClassContended means a serialization failure, a deadlock or a lock timeout, which does not count as an attempt of
	// any message.
	ClassContended
	// ClassDown means that the store does not work (connection, read-only, disk full, locked). The error does not count
	// as an attempt of any message, and the consumer waits until the store works again.
	ClassDown
	// ClassAborted means that the transaction was aborted or had ended before the failed statement. An earlier message
	// has caused the abort.
	ClassAborted
	// ClassClaimLost means that the commit should end a claim that is no longer valid. A lost claim does not count as
	// an attempt. The answers of the next Begin show which claim is lost.
	ClassClaimLost
)

// Limits has the limits of a store. A store whose Limits are the zero value has no limits and stores no steps.
type Limits struct {
	// Batch is the largest number of messages in a batch; 0 means no limit. Batch is for a store that cannot prevent a
	// handler from committing the transaction: this commit would also commit the markers of the other messages in the
	// batch.
	Batch int
	// SingleWriter is true if the store can have only one open batch at a time. With a single writer, a consumer begins
	// a batch only after the previous batch has ended, so that no message is claimed, or counted as started, while it
	// only waits in Begin.
	SingleWriter bool
	// StepOutput is the largest size of a step's output in bytes. 0 means that the store does not store the completed
	// steps of messages. A store with StepOutput implements Leases: ClaimEnding.Steps has the steps that are complete
	// with a commit. The row stores these steps in the same commit as their effects, and later claims return the steps
	// in StoredRow.Steps.
	StepOutput int
	// Connections is the size of the store's connection pool; 0 means no limit. Semel keeps its other limits, such as
	// the number of concurrent HTTP requests, below the size of the pool.
	Connections int
	// PartitionedBy is set by a store that has the markers of one consumer in daily partitions. PartitionedBy is the
	// kind of ids whose timestamp decides the partition, spelled as in a policy file, such as "uuidv7"; FitIdentity
	// rejects other ids. A store with daily partitions drops whole partitions and removes no single markers. Retain,
	// Progressed and Advance create partitions for the next days. If an id is older than the oldest partition, or newer
	// than the newest partition, has no marker, and Mark.Asks is true, no marker is written and the Verdict is Old. If
	// Mark.Asks is false, the marker is written outside of the partitions, and is not removed with a partition.
	PartitionedBy string
	// FitIdentity is for a store whose table of markers cannot store every identity, for example because the column has
	// type uuid. FitIdentity returns the canonical spelling of an id, so that two spellings of one id have one marker.
	// FitIdentity returns an error if the store cannot store the identity; the message then has no usable identity. If
	// FitIdentity is nil, the store can store every identity. FitIdentity is safe for concurrent use.
	FitIdentity func(source, id string) (string, error)
}
