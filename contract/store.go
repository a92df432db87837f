package contract

import (
	"context"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
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

// TxStore keeps markers in the same transactions as the handler's effects. Tx
// is the transaction type that handlers use.
//
// A store is safe for use by several goroutines.
type TxStore[Tx any] interface {
	// Scope interns (consumer, source, generation): the same arguments give
	// the same number for ever. It runs in a transaction of its own.
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	// Begin opens a transaction and writes the marks, which must be of
	// distinct identities, in an order that is the same for every batch. The
	// verdicts answer the marks one by one. A mark is Fresh exactly when this
	// transaction wrote it. After an error nothing is open and nothing is
	// written. ctx ends the call, not the batch it returned.
	Begin(ctx context.Context, o TxOptions, marks []Mark) (Batch[Tx], []Verdict, error)
	// Classify says what an error of the store's driver means for the batch; of
	// a handler's error it is asked where the batch is no HandlerClassifier.
	Classify(err error) Class
}

// TxOptions are the settings of one batch's transaction. Zero means that the
// store chooses; a store without the ability ignores the field.
type TxOptions struct {
	// MarkLock is how long a mark waits for a copy in flight elsewhere.
	MarkLock time.Duration
	// EffectLock is how long a handler's statement waits for a lock.
	EffectLock time.Duration
	// Statement is how long the server lets one statement of a handler run;
	// zero leaves it to the server, and a shorter limit of the server's stays.
	// What it ends is an attempt of the message whose statement it was. It must
	// not end the wait of a COMMIT for a standby: that would make a success of
	// what no standby has.
	Statement time.Duration
	// Answer is how long a batch that Queues waits at its end for one answer of
	// the server, in addition to what Statement gives the statements it answers.
	// Where it passes after COMMIT was sent, the outcome is unknown.
	Answer time.Duration
	// Idle is after how long without a statement the server ends the transaction.
	Idle time.Duration
	// Lease is of claims with which a batch begins that is no transaction.
	Lease time.Duration
	// Serial asks for the lock of Consumer: one batch of it at a time.
	Serial   bool
	Consumer string
	// Turn, with Serial, is how long Begin waits for that lock, which another
	// process's handler may keep; then it fails with ClassContended. Zero sets
	// no limit.
	Turn time.Duration
	// Working is the generation that the batch works in; see Generations.
	Working Working
}

// Mark is what a batch wants written of one identity.
type Mark struct {
	Scope int64
	// Consumer and Source are what Scope stands for. A store that encrypts binds what it
	// keeps of the message to them; others need neither.
	Consumer, Source string
	// ID is at most semel.MaxID bytes; a store hashes what its index cannot hold.
	ID          []byte
	Fingerprint semel.Fingerprint
	// As is Applied when a handler runs in this batch, otherwise what is only
	// written: Parked, DeadLettered, Discarded.
	As Outcome
	// Claim, if it has a token, asks whether the claim still stands, and writes
	// nothing: Scope, ID and Fingerprint are those of its row. The answer is Fresh,
	// ClaimLost, or Seen if other code has applied the identity, where a table of its
	// was adopted. It locks nothing; that the claim stands until the commit,
	// Ending.Claims makes sure.
	Claim Claim
	// Version is the message's place in its stream; zero if it has none. A row that is
	// written of the message keeps it.
	Version Version
	// Line, if not empty, is what the message keeps an order with, 1 to MaxLine bytes: a
	// key, or a lane. Marks of all scopes share the lines, so its name begins with the
	// consumer's and a zero byte. See Lines.
	Line []byte
	// Age, if not zero, asks whether what is kept goes back as far: a fresh mark that is
	// older than its scope's low-water mark is answered with Old. See Reaper.
	Age time.Time
	// Former, if not nil, is marked in the same statement: see Derivations.
	Former *FormerMark
	// Strict: a marker that is there counts as seen only if its fingerprint can be
	// compared with the mark's, and is equal. Otherwise it is a Conflict.
	Strict bool
	// Cause, of a mark that receives a message for another consumer, stands for the message
	// that caused it; nil for others. The row keeps it. See Emitter.
	Cause []byte
}

// Asks reports whether a mark asks whether its message may run, at once or as a row, and
// does not only say what became of it.
func (m *Mark) Asks() bool { return m.As == Applied || m.As == Waiting }

// VerdictKind is which answer a store gives to a mark.
type VerdictKind uint8

// The kinds.
const (
	// Fresh: no marker was there, and this transaction wrote it.
	Fresh VerdictKind = iota + 1
	// Seen: a marker was there before; Was is its outcome.
	Seen
	// Conflict: the identity is marked with another fingerprint.
	Conflict
	// Busy: a copy is in flight elsewhere and did not end within MarkLock.
	Busy
	// Newer: a marker is there, and this release does not know its outcome,
	// because a newer one wrote it. Nobody can tell whether the message may
	// run: it is held until a release knows. The fingerprint does not matter.
	Newer
	// ClaimLost: the claim does not stand any more, or its lease has ended.
	ClaimLost
	// Gap: the mark is written, or the claim stands, and an earlier version of the
	// stream has not taken effect yet.
	Gap
	// Stale: so it is, and the stream is at this version, or at a later one.
	Stale
	// Behind: the mark is written, and an earlier message of its line waits in the inbox.
	Behind
	// Old: the mark is written, and its message is older than what the scope's markers
	// are kept for: whether it has taken effect before, nobody knows any more. Of a
	// PartitionedMarkers the mark is not written.
	Old
)

// Verdict is a store's answer to a mark.
type Verdict struct {
	Kind VerdictKind
	// Was, with Seen and Newer, is what the marker says that is there. With Newer
	// an outcome that this release knows says that the rest of the marker is of a
	// form that it does not.
	Was Outcome
	// Known, with Conflict, says that a row for this very content exists
	// already: this delivery is one more copy of it. With Seen, of a claim, that it
	// has ended as this process asked. With Stale, that the stream is at this very
	// version, which had another content.
	Known bool
	// Former says that what stands under the former identity decided (Mark.Former).
	Former bool
	// Missing, with Gap, is how many versions are missing before the mark's.
	Missing int64
	// Ahead, with Old, says that the message is no older: by its time it is from the future.
	// See PartitionedMarkers and MaxClockSkew.
	Ahead bool
}

// Already reports whether a marker with this outcome was there before.
func (v Verdict) Already(o Outcome) bool { return v.Kind == Seen && v.Was == o }

// Batch is an open transaction with its marks. Its methods but Kill are called
// by one goroutine.
type Batch[Tx any] interface {
	// Tx is the transaction as message i of the marks sees it, or as a whole
	// with All. It is valid until the batch is over.
	Tx(i int) Tx
	// Commit takes back the trimmed marks, writes the rows and commits.
	// Whatever it says, the batch is over. The caller gives it a ctx that is
	// not cancelled by a stop but has a deadline.
	Commit(ctx context.Context, e Ending) Result
	// Rollback ends the batch; nothing of it is left. It cannot fail: what
	// the server did not hear, the cut connection tells.
	Rollback(ctx context.Context)
	// Kill cuts the connection under a handler that does not end. It may be
	// called from any goroutine, also after the batch is over.
	Kill()
}

// Queues is an optional ability of a Batch whose handlers only queue their
// statements and leave it to Commit to send them.
type Queues interface {
	// Queued is how many there are. Each has TxOptions.Statement, so Commit has
	// as many times as long beside what it has by itself; TxOptions.Answer ends
	// it sooner where nothing answers.
	Queued() int
}

// CommitCallbacks is an optional ability of a Batch whose Commit runs functions of its
// handlers', such as those that read rows before COMMIT is sent. They are held to
// consumer.Config.Timeout as handlers are.
type CommitCallbacks interface {
	// OnCallback gives the batch, before Commit, what to call when such a function
	// begins, with the mark of its message, and what that returned when it has
	// ended. One that goes on after its time-out has its batch killed while it
	// runs; it is then an attempt of its message, whatever it returns.
	OnCallback(begin func(mark int) (ended func()))
}

// All is the argument of Batch.Tx for a handler of the whole batch.
const All = -1

// HandlerClassifier is an optional ability of a Batch: to say what an error of a
// handler means for it. A handler also meets errors elsewhere, at a provider or
// in another database, which look like those of a store that is down.
type HandlerClassifier interface {
	// ClassifyHandler returns ClassContended, ClassDown or ClassAborted only for
	// what the batch itself knows of: its server answered so, its connection is
	// lost, its transaction is over. A batch that hears nothing of its handlers'
	// statements asks its server: any answer means that the error is the
	// handler's own, ClassRetry; none, before ctx ends, ClassDown. It is called
	// before the batch is over.
	ClassifyHandler(ctx context.Context, err error) Class
}

// TxStatus is an optional ability of a Batch: to say without a round trip that
// the transaction can no longer commit. It is asked after each handler, so
// that a swallowed error is charged to the message that caused it.
type TxStatus interface{ TxAborted() bool }

// TxAbortCause is an optional ability of a Batch with TxStatus: to say by which
// error. Classify judges it, so that contention and a lost connection are
// nobody's attempt although the handler said nothing of them. The batch that
// a handler ended by itself answers with an error of ClassPermanent, and nil
// is "not known": then the message is charged with an attempt.
type TxAbortCause interface{ AbortCause() error }

// Ending is what a batch writes with its commit.
type Ending struct {
	// Trim are the indexes of marks to take back: their handlers did not run.
	Trim []int
	Rows []Row
	// Claims end with the commit, each if its claim stands: the row changes as its
	// event says, with its marker. If one does not, nothing is committed, and the
	// result is of ClassClaimLost.
	Claims []ClaimEnding
}

// Row is an inbox row that a batch writes.
type Row struct {
	// Mark is the index of the row's mark.
	Mark int
	// Repeat says that the row exists: only count one more delivery on the
	// row of this identity (and, with Conflict, of this fingerprint).
	Repeat bool
	// Conflict says that the row is of a conflict: its key is identity and
	// fingerprint; it never changes the marker.
	Conflict bool
	// Surrogate says that the message has no usable identity and that the
	// mark's ID was made for this row only.
	Surrogate bool
	// State is the row's first state: StateParked, StateDiscarded, ... StateBlocked is
	// StateReceived if its turn has come; a state that waits is StateBlocked if it has a
	// line and is not the first of it.
	State    RowState
	Reason   semel.Reason
	Message  *semel.Message
	Attempts int
	// After, with a state that waits, is in how long the row is due.
	After time.Duration
	// FirstError and LastError are texts for people, cut to MaxErrorText.
	FirstError, LastError string
}

// MaxErrorText is the length in bytes to which error texts of rows are cut.
const MaxErrorText = 2048

// CommitOutcome says what became of a commit.
type CommitOutcome uint8

// What can become of a commit.
const (
	Committed CommitOutcome = iota + 1
	NotCommitted
	// CommitUnknown: only marking again can tell.
	CommitUnknown
)

// Result is the end of a batch.
type Result struct {
	Outcome CommitOutcome
	// Class says, when not committed, why.
	Class Class
	// Culprit is the mark index of the message to blame; NoCulprit if the
	// store cannot tell. With ClassContended and ClassDown it is the message
	// whose statement met it, and blamed for nothing yet.
	Culprit int
	Err     error
	// Freed: with the commit the turn has come of rows that were blocked.
	Freed bool
}

// NoCulprit is the Culprit of a failure that the store can charge to no message.
const NoCulprit = -1

// Class says what an error means for the batch it happened in.
type Class uint8

// The classes.
const (
	// ClassNone: there is no error.
	ClassNone Class = iota
	// ClassRetry: waiting may mend it; an attempt of the message at fault.
	ClassRetry
	// ClassPermanent: waiting cannot mend it (constraint, type, syntax).
	ClassPermanent
	// ClassContended: serialization failure, deadlock, lock time-out:
	// nobody's attempt.
	ClassContended
	// ClassDown: the store cannot work now (connection, read-only, disk
	// full, locked): nobody's attempt; the consumer pauses.
	ClassDown
	// ClassAborted: the transaction was broken or over before the statement
	// that met the error: the message to blame is an earlier one.
	ClassAborted
	// ClassClaimLost: a claim does not stand any more that the commit was to end.
	// Nobody's attempt; Begin tells which.
	ClassClaimLost
)

// FaultClassifier is an optional ability of a TxStore: to tell what surely is not the
// doing of the message that met it from what may be. A message that meets
// ClassContended or ClassDown alone, again and again, while others commit is
// charged in the end; not for what the store exonerates, however long it lasts.
type FaultClassifier interface {
	// IsStoreFault reports whether an error of these classes says that somebody
	// else holds a lock or was faster, or that the server lacks what every
	// transaction needs, such as room on its disk.
	IsStoreFault(err error) bool
}

// SchemaChecker is an optional ability of a store: to say, before anything is
// fetched, that its tables fit this release. While a run goes on it is asked
// again before the first transaction after a failure of the store, and once an
// hour; then whatever it returns counts as a store that is down.
type SchemaChecker interface {
	// Check returns nil or an error that wraps semel.ErrSchema and says what to do. It
	// may be called from several goroutines.
	Check(ctx context.Context) error
}

// BatchLimiter is an optional ability of a store: to bound the messages of a
// batch where it cannot keep a handler from committing by itself, which would
// take its neighbours' marks with it.
type BatchLimiter interface {
	// BatchLimit is the most messages of a batch, 0 without a limit.
	BatchLimit() int
}

// TurnTaker is an optional ability of a store: to say that its batches take turns,
// because it has one writer. A consumer then begins one when the last has ended, and
// nothing is claimed, or counted as begun, that only waits inside Begin.
type TurnTaker interface {
	// TakesTurns reports whether one batch of the store at a time can be open.
	TakesTurns() bool
}

// IdentityFitter is an optional ability of a store that marks in a table that
// does not hold every identity.
type IdentityFitter interface {
	// FitIdentity returns the id in the one spelling that the store tells
	// apart from others. An error says why it cannot hold the identity: its
	// message has none that could be used. Several goroutines may call it at once.
	FitIdentity(source, id string) (string, error)
}
