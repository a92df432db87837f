package machine

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Time is the time since the machine's start, on the process's monotonic clock.
type Time = time.Duration

// Item is one delivery or one claimed row. The engine fills the exported fields and passes the item with Fetched or
// Claimed. After the item was passed, only the Machine may change it.
type Item struct {
	Lane source.Lane
	// Source and Identity together are equal for copies of a message, and differ for different messages.
	Source, Identity string
	Print            semel.Fingerprint
	// The fields between Print and Before belong to the machine and use the padding after Print.
	//
	// The field counted is set for a copy that waits for a first copy, if the rows that the first copy's commit writes
	// count the waiting copy.
	counted bool
	// If blocks is true, the item blocks later items of its queue. If listed is true, the item is in the queue's list
	// of blockers, even if the item no longer blocks.
	blocks, listed bool
	// Before is the broker's count of earlier deliveries, or -1 if the count is unknown.
	Before int32
	// Former, if not nil, is the item's previous identity, under which the item is marked too.
	Former *Name
	// Route is a hash of the key or of the identity. Route selects the worker of the item, unless lanes are ordered.
	Route uint64
	// Size is the memory that the delivery uses, in bytes.
	Size int32
	// Only the machine uses the field attempts. The field is in the padding after Size.
	attempts int32
	// Refused, if not nil, is the reason why the item never runs. An item with Refused is written in a batch of its
	// own, with a surrogate as its identity, and ends as Config.OnBadIdentity says.
	Refused *Refusal
	// Claim, if not nil, means that the item is an inbox row that this process has claimed. No other process runs the
	// handler for the message. Further deliveries of the message are copies, which the store recognises by the marker.
	Claim *Claim
	// Version, if not nil, is the item's position in a stream of Source. The store knows whether the item has the next
	// version of its stream.
	Version *Version
	// Handle belongs to the engine.
	Handle any

	progress
}

// Name is an identity.
type Name struct{ Source, Identity string }

// Version is a position in a stream.
type Version struct {
	Stream string
	Number int64
}

// Refusal contains the reason why the handler never runs for an item.
type Refusal struct {
	Reason semel.Reason
	Why    error // for logs and rows
	// Foreign means that the item is not for the consumer and ends as Config.OnFiltered says. Unversioned means that
	// the item has no version and ends as Config.OnUnversioned says.
	Foreign, Unversioned bool
}

// Claim contains the data of a claim that the machine uses.
type Claim struct {
	// Attempts is the number of attempts that the row has recorded.
	Attempts int
	// Suspect means that the message may have crashed the process that claimed the row before. A suspect message is
	// alone in its batch.
	Suspect bool
	// Blocked means that the row has waited for its predecessor for the maximum time.
	Blocked bool
	// Until is the time at which the claim is released if the handler of its row has not begun, or has not begun again.
	Until Time

	begun bool
	// stepped means that the last run was a step, and that further steps follow.
	stepped bool
}

// As is the outcome with which an entry is marked, or with which its claim ends.
type As uint8

// The values of As.
const (
	AsApplied   As = iota + 1 // a handler runs
	AsDuplicate               // no handler runs, because the effect exists; the marker says applied
	AsParked
	AsDiscarded
	AsDeadLettered
	// AsReceived means that the message is stored in the inbox, and no handler runs yet.
	AsReceived
	// AsWaiting means that the handler failed and that the message waits in the inbox until a time. With AsWaiting, a
	// claimed row waits again.
	AsWaiting
	// AsBlocked means that the message is stored in the inbox until its predecessor has been applied.
	AsBlocked
	// AsOverdue means that a claimed row is parked because its predecessor did not arrive in time. If the predecessor
	// arrives before the row is parked, the store unblocks the row instead.
	AsOverdue
	// AsStepped means that a step of a claimed row was applied, and that the next step is due.
	AsStepped
)

// String returns the name of the value.
func (a As) String() string {
	return enum.Name([]string{
		AsApplied: "applied", AsDuplicate: "duplicate", AsParked: "parked", AsDiscarded: "discarded", AsDeadLettered: "dead-lettered", AsReceived: "received",
		AsWaiting: "waiting", AsBlocked: "blocked", AsOverdue: "overdue", AsStepped: "stepped",
	}, a, "As")
}

// Entry is one item in a batch.
type Entry struct {
	Item *Item
	As   As
	// Unmarked means that no marker is written (strategy natural).
	Unmarked bool
	// Unknown means that the outcome of the item's last commit is unknown. If the item is a claimed row, its
	// row must be claimed again.
	Unknown bool
}

// Flight is a batch that is being processed. Entries are in order of arrival and never change.
type Flight struct {
	Number  uint64
	Worker  int
	Entries []Entry

	flightState
}

// Failure is the reason why a Run stopped before its end.
type Failure struct {
	// Class is ClassRetry or ClassPermanent if a message caused the failure, and ClassContended or ClassDown if no
	// message caused the failure. Class is ClassAborted if an earlier message caused the failure, or if a handler of
	// the whole batch failed. Class is ClassClaimLost if the whole batch must run again at once, without an attempt:
	// because a claim is lost, or because the engine rolls back successful handlers on purpose.
	Class    store.Class
	Decision semel.Decision
	After    time.Duration
	Reason   semel.Reason
	// Free means that no handler ran, so the failure does not count as an attempt.
	Free bool
	// Outside is used with ClassContended and ClassDown. If Outside is true, the message whose handler got the error
	// cannot have caused the error, and is not suspected.
	Outside bool
	// Err is the error, which the machine passes on with rows.
	Err error
}

// Event is an event for the machine. Given, Lost, Fetched, Marked and so on implement Event.
type Event interface{ event() }

type (
	// Given means that the lane was assigned. Deliveries of the lane will follow.
	Given struct{ Lane source.Lane }
	// Revoking means that the lane will be lost soon. The response is Release.
	Revoking struct{ Lane source.Lane }
	// Lost means that the lane is lost.
	Lost struct{ Lane source.Lane }
	// Fetched is the response to Fetch. End means that the source has ended. Failed means that the source
	// could not be reached; the machine tries again after a delay. Unanswered means that the Fetch was
	// cancelled before the source was reached, so it is unknown whether the source works.
	Fetched struct {
		Items      []*Item
		End        bool
		Failed     bool
		Unanswered bool
		// If More is true and Items is empty, the source has more messages. More is valid in the response to
		// CancelFetch with Idle. If Config.IdleExit or Config.Ends is set, More is also valid after a Fetch without
		// deliveries that was not cancelled. In all other responses More has no meaning. Deliveries of paused lanes do
		// not count.
		More bool
		Err  error // why the Fetch failed
	}
	// Marked is the response to Begin. Marked contains the store's answer for each entry (new, duplicate, conflict). If
	// Class is not ClassNone, no transaction is open. CopyBusy means that a marker waited too long for another process,
	// which is processing a copy, and that the store does not know which marker.
	Marked struct {
		Flight   *Flight
		Verdicts []store.Verdict
		Class    store.Class
		CopyBusy bool
		Err      error
	}
	// Ran is the response to Run. Done is the number of handlers, counted from the first, that succeeded. If there is a
	// Failure, the next handler failed or, if the Failure has ClassAborted, an earlier handler failed. If there is no
	// Failure and Done is less than the number of handlers, the time was used up or StopRun ended the run.
	Ran struct {
		Flight *Flight
		Done   int
		// Stepped contains those done entries with a claim that have a further step.
		Stepped []int
		Failed  bool
		// Whole means that one handler ran for all messages in Fresh and failed. Any message in Fresh may be the cause.
		Whole bool
		Failure
	}
	// Stuck means that a handler has exceeded its timeout. The response is Kill. The field Item is the handler's item,
	// or nil if one handler runs for all of Fresh. Committing means that a callback of the store during the commit has
	// exceeded the timeout. With Committing, the engine has already closed the connection and reported the callback,
	// and there is no response.
	Stuck struct {
		Flight     *Flight
		Item       *Item
		Committing bool
	}
	// Ended is the response to Commit and to Rollback. After Rollback, Outcome is NotCommitted.
	Ended struct {
		Flight  *Flight
		Outcome store.CommitOutcome
		Class   store.Class
		// Culprit is the index of the entry that caused the failure, or -1 if that entry is unknown.
		Culprit int
		// Decision, After and Reason are the decision of the culprit's handler, if the commit returned the
		// handler's error.
		Decision semel.Decision
		After    time.Duration
		Reason   semel.Reason
		// Outside is Failure.Outside.
		Outside bool
		Err     error
		// Until is the time at which claims are released that did not end and whose handlers did not begin again. 0
		// means no change.
		Until Time
		// Freed means that the commit unblocked rows.
		Freed bool
	}
	// Settled is the response to Settle. Left contains the indexes of the settlements (acks, nacks, dead letters) that
	// must be passed again.
	Settled struct {
		Settle *Settle
		Left   []int
		Err    error // the source's error
	}
	// Claimed is the response to ClaimRows. Failed means that the inbox could not be reached. Later, if not
	// 0, is a delay: no row was claimed because an operator has paused or limited the consumer.
	Claimed struct {
		Items  []*Item
		Failed bool
		Later  time.Duration
		Err    error
	}
	// Due means that a row of the inbox may be due.
	Due struct{}
	// Timer means that the time of the last Wake has come. An early Timer does no harm.
	Timer struct{}
	// Stop makes the machine drain and end.
	Stop struct{}
)

func (Given) event()    {}
func (Revoking) event() {}
func (Lost) event()     {}
func (Fetched) event()  {}
func (Marked) event()   {}
func (Ran) event()      {}
func (Stuck) event()    {}
func (Ended) event()    {}
func (Settled) event()  {}
func (Claimed) event()  {}
func (Due) event()      {}
func (Timer) event()    {}
func (Stop) event()     {}
