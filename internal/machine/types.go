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

// Item is one delivery. The shell fills the exported fields and passes the item with Fetched; from then on it
// belongs to the machine.
type Item struct {
	Lane source.Lane
	// Source and Identity together are equal for copies and differ otherwise.
	Source, Identity string
	Print            semel.Fingerprint
	// The following fields belong to the machine; they use the padding after Print.
	//
	// counted, of a rider, reports that the rows of the carrier's commit count it as a repeat.
	counted bool
	// blocks: the item blocks later items of its queue. listed: it is in the queue's blockers, whether or not it
	// still blocks.
	blocks, listed bool
	// Before is the broker's count of earlier deliveries; -1 if unknown.
	Before int32
	// Former, if not nil, is the item's previous identity, which its mark also covers.
	Former *Name
	// Route chooses the worker if lanes do not: a hash of the key or of the identity.
	Route uint64
	// Size is the memory that the delivery uses, in bytes.
	Size int32
	// attempts belongs to the machine; it uses the padding after Size.
	attempts int32
	// Refused, if not nil, is why the item never runs. It is written alone, with an identity of its own (a
	// surrogate), and ends as Config.OnBadIdentity says.
	Refused *Refusal
	// Claim, if not nil, means that the item is an inbox row that this process has claimed. No other run of its
	// message exists: other deliveries of the message are copies, which the store recognises by its marker.
	Claim *Claim
	// Version, if not nil, is the item's position in a stream of Source. The store knows whether it is next.
	Version *Version
	// Handle belongs to the shell.
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

// Refusal says why an item never runs.
type Refusal struct {
	Reason semel.Reason
	Why    error // for people
	// Foreign means that the item is not for this consumer and ends as Config.OnFiltered says. Unversioned means
	// that it has no version and ends as Config.OnUnversioned says.
	Foreign, Unversioned bool
}

// Claim is the machine's part of a claim.
type Claim struct {
	// Attempts is the number of runs that the row has recorded.
	Attempts int
	// Suspect means that the message may have crashed the process of its previous owner; it flies alone.
	Suspect bool
	// Blocked means that the row has waited for an earlier version for the maximum time.
	Blocked bool
	// Until is when the claim is released if it has not begun, or begun again.
	Until Time

	begun bool
	// stepped: the last run was a step, and not the last one.
	stepped bool
}

// As is the outcome of an entry's mark, or how its claim ends.
type As uint8

// The values of As.
const (
	AsApplied   As = iota + 1 // a handler runs
	AsDuplicate               // no handler runs, because the effect exists; marked as applied
	AsParked
	AsDiscarded
	AsDeadLettered
	// AsReceived: stored in the inbox; no handler runs yet.
	AsReceived
	// AsWaiting: the handler failed, and the message waits in the inbox until a time; the row of a claim waits
	// again.
	AsWaiting
	// AsBlocked: stored in the inbox until the previous version has been applied.
	AsBlocked
	// AsOverdue: the row of a claim is parked, because the previous version did not arrive in time. If it has
	// arrived meanwhile, the store unblocks the row instead.
	AsOverdue
	// AsStepped: a step of a claim's message was applied, and the next step is due.
	AsStepped
)

// String returns the name of the value.
func (a As) String() string {
	return enum.Name([]string{
		AsApplied: "applied", AsDuplicate: "duplicate", AsParked: "parked", AsDiscarded: "discarded", AsDeadLettered: "dead-lettered", AsReceived: "received",
		AsWaiting: "waiting", AsBlocked: "blocked", AsOverdue: "overdue", AsStepped: "stepped",
	}, a, "As")
}

// Entry is one item in a flight.
type Entry struct {
	Item *Item
	As   As
	// Unmarked means that no mark is written (strategy natural).
	Unmarked bool
	// Unknown means that the outcome of the item's last commit is unknown, and its claim must be taken again.
	Unknown bool
}

// Flight is a batch in progress. Entries are in order of arrival and never change.
type Flight struct {
	Number  uint64
	Worker  int
	Entries []Entry

	flightState
}

// Failure says why a Run stopped before its end.
type Failure struct {
	// Class is ClassRetry or ClassPermanent if a message is to blame, ClassContended or ClassDown if none is, and
	// ClassAborted if an earlier message is, or if a handler of the whole batch failed.
	Class    store.Class
	Decision semel.Decision
	After    time.Duration
	Reason   semel.Reason
	// Free means that no handler ran, so that no message is charged with an attempt.
	Free bool
	// Outside, with ClassContended and ClassDown, means that the message that met the error cannot have caused it;
	// it is not suspected.
	Outside bool
	// Err is for people; the machine returns it with rows.
	Err error
}

// Event is an event. The types below implement it.
type Event interface{ event() }

// The events.
type (
	// Given: the lane was assigned, and its deliveries will follow.
	Given struct{ Lane source.Lane }
	// Revoking: the lane is about to be lost; Release is the response.
	Revoking struct{ Lane source.Lane }
	// Lost: the lane is lost.
	Lost struct{ Lane source.Lane }
	// Fetched is the response to Fetch. End: the source has ended. Failed: the source could not be reached, and
	// the machine tries again after a delay. Unanswered: the Fetch was cancelled before the source was reached, so
	// that it is unknown whether it works.
	Fetched struct {
		Items      []*Item
		End        bool
		Failed     bool
		Unanswered bool
		// More, without Items, means that the source has more to deliver. More is set in the response to
		// CancelFetch with Idle, and of a Fetch without deliveries that was not cancelled, if Config.IdleExit or
		// Config.Ends is set. In other responses it means nothing. Deliveries of paused lanes do not count.
		More bool
		Err  error // why it failed
	}
	// Marked is the response to Begin: the verdicts by entry, or a Class other than ClassNone, and then no
	// transaction is open. CopyBusy: a mark waited too long for a copy in another process, and the store cannot
	// say which mark.
	Marked struct {
		Flight   *Flight
		Verdicts []store.Verdict
		Class    store.Class
		CopyBusy bool
		Err      error
	}
	// Ran is the response to Run. Done is the number of handlers, from the first, that succeeded. With a Failure
	// the next handler failed or, with ClassAborted, one of those before. Without a Failure, if Done is less than
	// the number of handlers, the time was used up or StopRun ended the run.
	Ran struct {
		Flight *Flight
		Done   int
		// Stepped are the entries with a claim, among those that are done, that have another step left.
		Stepped []int
		Failed  bool
		// Whole means that one handler ran for all of Fresh and failed; any of the messages may be to blame.
		Whole bool
		Failure
	}
	// Stuck: a handler has exceeded its timeout; Kill is the response. Item is its item, nil if one handler runs
	// for all of Fresh. With Committing it is a callback of the store during the commit: the shell has closed its
	// connection and reported it, and there is no response.
	Stuck struct {
		Flight     *Flight
		Item       *Item
		Committing bool
	}
	// Ended is the response to Commit and to Rollback, for the latter with NotCommitted.
	Ended struct {
		Flight  *Flight
		Outcome store.CommitOutcome
		Class   store.Class
		// Culprit is the index of the entry to blame; -1 if unknown.
		Culprit int
		// Decision, After and Reason are the decision of the culprit's handler, if its error came with the end.
		Decision semel.Decision
		After    time.Duration
		Reason   semel.Reason
		// Outside is Failure.Outside.
		Outside bool
		Err     error
		// Until is when claims are released that did not end and did not begin again; 0 means no change.
		Until Time
		// Freed means that the commit unblocked rows.
		Freed bool
	}
	// Settled is the response to Settle; Left are the indexes to send again.
	Settled struct {
		Settle *Settle
		Left   []int
		Err    error // the broker's error
	}
	// Claimed is the response to ClaimRows. Failed: the inbox could not be reached. Later, if not 0, is a delay:
	// nothing was claimed, because of an operator's pause or limit.
	Claimed struct {
		Items  []*Item
		Failed bool
		Later  time.Duration
		Err    error
	}
	// Due: a row of the inbox may be due.
	Due struct{}
	// Timer: the time of the last Wake has come. An early Timer does no harm.
	Timer struct{}
	// Stop: drain and end.
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
