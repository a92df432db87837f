package machine

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Time is a moment on the process's monotonic clock, since the machine's start.
type Time = time.Duration

// Item is what the machine knows of one delivery. The shell fills the exported
// fields and hands it over with Fetched; from then on it is the machine's.
type Item struct {
	Lane source.Lane
	// Source and Identity together are equal for copies and for nothing else.
	Source, Identity string
	Print            semel.Fingerprint
	// What follows is the machine's, and stands in the room that Print leaves.
	//
	// counted, of a rider: its repeat is in the rows of the carrier's commit.
	counted bool
	// blocks: it keeps later items of its queue back; listed: it stands among
	// the queue's blockers, whether or not it still does.
	blocks, listed bool
	// Before is the broker's count of earlier deliveries, -1 unknown.
	Before int32
	// Former, when not nil, is the item's former identity, which its mark is for as well.
	Former *Name
	// Route chooses the worker where lanes do not: a hash of the key, or of
	// the identity.
	Route uint64
	// Size is what the delivery holds of memory, in bytes.
	Size int32
	// attempts, of the machine's own part, stands in the room that Size leaves.
	attempts int32
	// Refused, when not nil, is why the item never runs: it is written alone,
	// with its own identity (a surrogate), and ends as Config.OnBadIdentity says.
	Refused *Refusal
	// Claim, when not nil, says that the item is a row of the inbox, which this
	// process has claimed. It is its message's only run: what is delivered beside it
	// is a copy, which the store knows by its marker.
	Claim *Claim
	// Version, when not nil, is the item's place in a stream of Source: the store knows
	// whether its turn has come.
	Version *Version
	// Handle is the shell's.
	Handle any

	progress
}

// Name is an identity.
type Name struct{ Source, Identity string }

// Version is a place in a stream.
type Version struct {
	Stream string
	Number int64
}

// Refusal is why an item never runs.
type Refusal struct {
	Reason semel.Reason
	Why    error // for people
	// Foreign says that it is not this consumer's: it ends as Config.OnFiltered
	// says instead. Unversioned says that it has no place in a stream: it ends as
	// Config.OnUnversioned says.
	Foreign, Unversioned bool
}

// Claim is what the machine knows of a claim.
type Claim struct {
	// Attempts are the runs that the row knows of.
	Attempts int
	// Suspect says that who had the row before may have died of it: it flies alone.
	Suspect bool
	// Blocked says that it has waited for an earlier version for as long as it may.
	Blocked bool
	// Until is when it is given back if it was not begun, or begun again.
	Until Time

	begun bool
	// stepped: its last run was a step, and not its last one.
	stepped bool
}

// As is what a mark of an entry says, or how its claim ends.
type As uint8

// How an entry is marked.
const (
	AsApplied   As = iota + 1 // a handler runs
	AsDuplicate               // no handler runs: the effect is there already; marked applied
	AsParked
	AsDiscarded
	AsDeadLettered
	// AsReceived: it is kept in the inbox, and no handler runs yet.
	AsReceived
	// AsWaiting: its handler failed, and it is kept in the inbox until a time; a
	// claim's row waits there again.
	AsWaiting
	// AsBlocked: it is kept in the inbox until the version before it has taken effect.
	AsBlocked
	// AsOverdue: a claim's row is parked, since that did not come in time. The store
	// frees it instead if it has come meanwhile.
	AsOverdue
	// AsStepped: a step of a claim's message took effect, and the next one is due.
	AsStepped
)

// String is the value's name.
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
	// Unmarked says that no mark is wanted: natural idempotency.
	Unmarked bool
	// Unknown says that the outcome of the item's last commit is unknown: its claim is
	// to be taken anew.
	Unknown bool
}

// Flight is a batch under way. Entries are in arrival order and never change.
type Flight struct {
	Number  uint64
	Worker  int
	Entries []Entry

	flightState
}

// Failure is why a Run stopped before its end.
type Failure struct {
	// Class is ClassRetry or ClassPermanent when a message is to blame; ClassContended or
	// ClassDown when nobody is; ClassAborted when an earlier message is, or when the
	// handler of the whole batch failed.
	Class    store.Class
	Decision semel.Decision
	After    time.Duration
	Reason   semel.Reason
	// Free says that no handler ran: nobody is charged with an attempt.
	Free bool
	// Outside, with ClassContended and ClassDown, says that it surely is not the doing of
	// the message that met it: it is not suspected.
	Outside bool
	// Err is for people; the machine hands it back with rows.
	Err error
}

// Event is what happened. The types below implement it.
type Event interface{ event() }

// Events.
type (
	// Given: deliveries of the lane will follow.
	Given struct{ Lane source.Lane }
	// Revoking: the lane is to be left; answered by Release.
	Revoking struct{ Lane source.Lane }
	// Lost: the lane is gone.
	Lost struct{ Lane source.Lane }
	// Fetched answers Fetch. End: nothing will ever follow. Failed: the
	// source could not be asked; the machine backs off. Unanswered: the Fetch
	// was cancelled before the source could be asked; whether it works is not
	// known.
	Fetched struct {
		Items      []*Item
		End        bool
		Failed     bool
		Unanswered bool
		// More, without Items: there is more to deliver. It answers CancelFetch
		// with Idle, and a Fetch that was not cancelled and brought nothing, where
		// Config.IdleExit or Config.Ends is set; any other answer says nothing of it.
		// What the lanes that are paused have is no more.
		More bool
		Err  error // why it failed
	}
	// Marked answers Begin: Verdicts by entry, or Class other than ClassNone and
	// nothing is open. CopyBusy: a mark waited too long for a copy in flight
	// elsewhere, and the store cannot say which.
	Marked struct {
		Flight   *Flight
		Verdicts []store.Verdict
		Class    store.Class
		CopyBusy bool
		Err      error
	}
	// Ran answers Run. Done counts the handlers that returned without
	// failure, from the first. With a Failure the next one failed, or, for
	// ClassAborted, one of those before. Without one and Done less than wanted, the
	// budget or StopRun ended it.
	Ran struct {
		Flight *Flight
		Done   int
		// Stepped are entries with a claim, among those that are done, of which another step is left.
		Stepped []int
		Failed  bool
		// Whole says that one handler ran all of Fresh and that it failed: any
		// of them may be to blame.
		Whole bool
		Failure
	}
	// Stuck: a handler goes on after its timeout; answered by Kill. Item is
	// whose handler it is, nil if one handler runs all of Fresh. Committing: it
	// is what the store calls back in its commit; the shell has cut its
	// connection and told of it, and there is no answer.
	Stuck struct {
		Flight     *Flight
		Item       *Item
		Committing bool
	}
	// Ended answers Commit and Rollback, the latter with NotCommitted.
	Ended struct {
		Flight  *Flight
		Outcome store.CommitOutcome
		Class   store.Class
		// Culprit is the index of the entry to blame, -1 if none is named.
		Culprit int
		// Decision, After and Reason are what the culprit's handler decided
		// with its error, where that came with the end.
		Decision semel.Decision
		After    time.Duration
		Reason   semel.Reason
		// Outside is as in Failure.
		Outside bool
		Err     error
		// Until is when those of its claims are given back that did not end and were
		// not begun again; 0: it is as it was.
		Until Time
		// Freed: with the commit the turn has come of rows that were blocked.
		Freed bool
	}
	// Settled answers Settle; Left are indexes to be tried again.
	Settled struct {
		Settle *Settle
		Left   []int
		Err    error // what the broker said of it
	}
	// Claimed answers ClaimRows. Failed: the inbox could not be asked. Later, if not 0:
	// it was not asked, because an operator wants it so, and may be in so long.
	Claimed struct {
		Items  []*Item
		Failed bool
		Later  time.Duration
		Err    error
	}
	// Due: something in the inbox may be due.
	Due struct{}
	// Timer: the moment of the last Wake has come. Early ones do no harm.
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
