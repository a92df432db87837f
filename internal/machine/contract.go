package machine

import "time"

// Time is a moment on the process's monotonic clock, since the machine's start.
type Time = time.Duration

// Lane is an ordered stream of deliveries; a new epoch with every Given.
type Lane struct {
	ID    string
	Epoch uint64
}

// Print recognises content; the zero value is none. Comparable.
type Print struct {
	Version uint8
	Sum     [16]byte
}

// Item is what the machine knows of one delivery. The shell fills the exported
// fields and hands it over with Fetched; from then on it is the machine's.
type Item struct {
	Lane Lane
	// Source and Identity together are equal for copies and for nothing else.
	Source, Identity string
	Print            Print
	// Route chooses the worker where lanes do not: a hash of the key, or of
	// the identity.
	Route uint64
	// Size is what the delivery holds of memory, in bytes.
	Size int
	// Before is the broker's count of earlier deliveries, -1 unknown.
	Before int
	// Refused, when set, is why the item never runs: it is written alone,
	// with its own identity (a surrogate), and ends as Config.OnRefused says.
	Refused string
	// Why, with Refused, is for people.
	Why error
	// Handle is the shell's.
	Handle any

	state
}

// As is what a mark of an entry says.
type As uint8

// How an entry is marked.
const (
	AsApplied   As = iota + 1 // a handler runs
	AsDuplicate               // no handler runs: the effect is there already; marked applied
	AsParked
	AsDiscarded
	AsDeadLettered
)

// Entry is one item in a flight.
type Entry struct {
	Item *Item
	As   As
	// Unmarked says that no mark is wanted: natural idempotency.
	Unmarked bool
}

// Flight is a batch under way. Entries are in arrival order and never change.
type Flight struct {
	Number  uint64
	Worker  int
	Entries []Entry

	flightState
}

// Verdict is the store's answer to a mark.
type Verdict uint8

// The verdicts.
const (
	Fresh Verdict = iota + 1
	AlreadyApplied
	AlreadyWaiting
	AlreadyParked
	AlreadyDeadLettered
	AlreadyDiscarded
	Conflict
	// ConflictKnown: a conflict whose row exists already.
	ConflictKnown
	Busy
)

// Class says what an error means; None is success.
type Class uint8

// The classes.
const (
	None Class = iota
	Retry
	Permanent
	Contended
	Down
	Aborted
	// CopyBusy, of a Begin: a mark waited too long for a copy in flight
	// elsewhere; the store cannot say which.
	CopyBusy
)

// Decision is what a failed handler asks for.
type Decision uint8

// The decisions.
const (
	DecideRetry Decision = iota + 1
	DecidePermanent
	DecidePark
	DecideDiscard
	DecideDuplicate
	DecideUnmet
)

// Failure is why a Run stopped before its end.
type Failure struct {
	// Class is Retry or Permanent when a message is to blame; Contended or
	// Down when nobody is; Aborted when an earlier message is, or when the
	// handler of the whole batch failed.
	Class    Class
	Decision Decision
	After    time.Duration
	Reason   string
	// Free says that no handler ran: nobody is charged with an attempt.
	Free bool
	// Err is for people; the machine hands it back with rows.
	Err error
}

// Event is what happened. The types below implement it.
type Event interface{ event() }

// Events.
type (
	// Given: deliveries of the lane will follow.
	Given struct{ Lane Lane }
	// Revoking: the lane is to be left; answered by Release.
	Revoking struct{ Lane Lane }
	// Lost: the lane is gone.
	Lost struct{ Lane Lane }
	// Fetched answers Fetch. End: nothing will ever follow. Failed: the
	// source could not be asked; the machine backs off.
	Fetched struct {
		Items  []*Item
		End    bool
		Failed bool
		Err    error // why it failed
	}
	// Marked answers Begin: Verdicts by entry, or Class other than None and
	// nothing is open.
	Marked struct {
		Flight   *Flight
		Verdicts []Verdict
		Class    Class
		Err      error
	}
	// Ran answers Run. Done counts the handlers that returned without
	// failure, from the first. With a Failure the next one failed, or, for
	// Aborted, one of those before. Without one and Done less than wanted, the
	// budget or StopRun ended it.
	Ran struct {
		Flight *Flight
		Done   int
		Failed bool
		// Whole says that one handler ran all of Fresh and that it failed: any
		// of them may be to blame.
		Whole bool
		Failure
	}
	// Stuck: a handler goes on after its timeout; answered by Kill. Item is
	// whose handler it is, nil if one handler runs all of Fresh.
	Stuck struct {
		Flight *Flight
		Item   *Item
	}
	// Ended answers Commit and Rollback.
	Ended struct {
		Flight  *Flight
		Outcome CommitOutcome
		Class   Class
		// Culprit is the index of the entry to blame, -1 if none is named.
		Culprit int
		// Decision, After and Reason are what the culprit's handler decided
		// with its error, where that came with the end.
		Decision Decision
		After    time.Duration
		Reason   string
		Err      error
	}
	// Settled answers Settle; Left are indexes to be tried again.
	Settled struct {
		Settle *Settle
		Left   []int
		Err    error // what the broker said of it
	}
	// Timer: the moment of the last Wake has come. Early ones do no harm.
	Timer struct{}
	// Stop: drain and end.
	Stop struct{}
)

// CommitOutcome says what became of a commit.
type CommitOutcome uint8

// What can become of a commit; Rollback is answered with NotCommitted.
const (
	Committed CommitOutcome = iota + 1
	NotCommitted
	Unknown
)

// Action is what the shell must do. The types below implement it.
type Action interface{ action() }

// Row is an inbox row to write with a commit.
type Row struct {
	Entry    int
	Repeat   bool // count one more delivery on the row that is there
	Conflict bool
	As       As // AsParked, AsDiscarded or AsDeadLettered
	Reason   string
	Attempts int
	First    error
	Last     error
}

// SettleKind is what the broker is told.
type SettleKind uint8

// The ways to settle.
const (
	Ack SettleKind = iota + 1
	HandBack
	// DeadLetter: copy it to the dead letters; its Ack follows.
	DeadLetter
)

// Ending is how a delivery ended, for counts and observers.
type Ending uint8

// The endings.
const (
	NotEnded Ending = iota // handed back
	EndApplied
	EndDuplicate
	EndConflict
	EndParked
	EndDeadLettered
	EndDiscarded
)

// Settlement is what to tell the broker of one item.
type Settlement struct {
	Item   *Item
	Kind   SettleKind
	After  time.Duration
	Ending Ending
	Reason string
	Err    error
	// Attempts, with DeadLetter, is how often its handler ran.
	Attempts int
	// Again says that an earlier Settle of the same item was not carried out.
	Again bool
}

// Actions.
type (
	// Fetch asks the source; one at a time, answered by Fetched.
	Fetch struct {
		Messages int
		Bytes    int64
	}
	// CancelFetch ends a blocked Fetch, which still answers.
	CancelFetch struct{}
	// Begin opens the flight's transaction with its marks; answered by Marked.
	// Serial asks for the consumer's lock: one batch of it at a time.
	Begin struct {
		Flight *Flight
		Serial bool
	}
	// Run runs the handlers of the entries Fresh, in order; answered by Ran.
	Run struct {
		Flight *Flight
		Fresh  []int
		Budget time.Duration
	}
	// StopRun: let the handler that runs finish and start no other. Abort
	// says to cancel its context as well.
	StopRun struct {
		Flight *Flight
		Abort  bool
	}
	// Commit ends the flight; answered by Ended.
	Commit struct {
		Flight *Flight
		Trim   []int
		Rows   []Row
	}
	// Rollback ends the flight; answered by Ended with NotCommitted.
	Rollback struct{ Flight *Flight }
	// Kill cuts the flight's connection; its handler still answers with Ran.
	Kill struct{ Flight *Flight }
	// Settle tells the broker; answered by Settled.
	Settle struct{ Items []Settlement }
	// Flow pauses or resumes a lane.
	Flow struct {
		Lane Lane
		On   bool
	}
	// Release answers Revoking: the lane's last settlement is in.
	Release struct{ Lane Lane }
	// Wake asks for a Timer at a moment; it replaces the last one.
	Wake struct{ At Time }
	// Report tells observers what settles nothing.
	Report struct {
		Kind   ReportKind
		Item   *Item // may be nil
		Wait   time.Duration
		Reason string
		Err    error
		N      int
	}
	// Done: the machine has ended; nothing follows. Halted says that a
	// message ended it; Item and Err are the message and its last error.
	Done struct {
		Halted bool
		Item   *Item
		Reason string
		Err    error
		// Idle says that it ended because of IdleExit or the source's end.
		Idle bool
	}
)

// ReportKind names a report.
type ReportKind uint8

// The reports.
const (
	ReportRetry ReportKind = iota + 1
	ReportReady
	ReportNotReady
	ReportUnknown
	ReportStuck
	ReportBackstop
	ReportCommitted
	// ReportContended: a flight met a deadlock, a lock time-out or a
	// serialization failure and runs again.
	ReportContended
	// ReportSerial: for Wait, batches of this consumer run one at a time.
	ReportSerial
	// ReportParallel ends it.
	ReportParallel
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
func (Timer) event()    {}
func (Stop) event()     {}

func (Fetch) action()       {}
func (CancelFetch) action() {}
func (Begin) action()       {}
func (Run) action()         {}
func (StopRun) action()     {}
func (Commit) action()      {}
func (Rollback) action()    {}
func (Kill) action()        {}
func (*Settle) action()     {}
func (Flow) action()        {}
func (Release) action()     {}
func (Wake) action()        {}
func (Report) action()      {}
func (Done) action()        {}
