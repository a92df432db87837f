package machine

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/source"
)

// Action is what the shell must do. The types below implement it.
type Action interface{ action() }

// Row is an inbox row to write with a commit.
type Row struct {
	Entry    int
	Repeat   bool // count one more delivery on the row that is there
	Conflict bool
	// As is AsParked, AsDiscarded, AsDeadLettered, AsReceived, AsWaiting or AsBlocked. Of an item
	// with a claim it is how that ends, and may be AsApplied, AsDuplicate or AsOverdue, too.
	As       As
	Reason   semel.Reason
	Attempts int
	// After, with AsWaiting and AsBlocked, is in how long the row is due.
	After time.Duration
	First error
	Last  error
}

// Settlement is what to tell the broker of one item.
type Settlement struct {
	Item   *Item
	Kind   semel.SettleKind
	After  time.Duration
	Ending source.End
	Reason semel.Reason
	Err    error
	// Charged, with Nack, says that its handler ran and that it failed.
	Charged bool
	// Attempts, with DeadLetter, is how often its handler ran.
	Attempts int
	// Again says that an earlier Settle of the same item was not carried out.
	Again bool
}

// Behind is a lane of which messages are left that a newer release marked, or
// that wait for one of those.
type Behind struct {
	Lane     source.Lane
	Messages int
	// Item is the first that is awaited, nil where it is in another lane; Why is
	// what is known of its marker.
	Item *Item
	Why  error
}

// Actions.
type (
	// Fetch asks the source; one at a time, answered by Fetched.
	Fetch struct {
		Messages int
		Bytes    int64
	}
	// CancelFetch ends a blocked Fetch, which still answers. Idle: the run would
	// end for it, so the answer says whether the source has more. Without Idle it
	// may follow one with it: the run stops, and nobody waits for that.
	CancelFetch struct{ Idle bool }
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
	// Over says how an item with a claim ended; nothing is to be settled.
	Over struct{ Settlement }
	// ClaimRows asks the inbox for rows that are due; one at a time, answered by
	// Claimed.
	ClaimRows struct {
		Messages int
		Bytes    int64
	}
	// Unclaim gives claims back whose messages did not end; nobody answers. Halted,
	// one of Items or nil, is the message that halts the consumer: its attempt, which
	// failed with Err, is written down.
	Unclaim struct {
		Items  []*Item
		Halted *Item
		Err    error
	}
	// Flow pauses or resumes a lane.
	Flow struct {
		Lane source.Lane
		On   bool
	}
	// Release answers Revoking: the lane's last settlement is in.
	Release struct{ Lane source.Lane }
	// Wake asks for a Timer at a moment; it replaces the last one.
	Wake struct{ At Time }
	// Report tells observers what settles nothing. Part, with ReportReady and
	// ReportNotReady, is what works again or does not: store, source, broker,
	// handler, inbox.
	Report struct {
		Kind ReportKind
		Item *Item // may be nil
		Wait time.Duration
		Part string
		Err  error
		N    int
	}
	// Done: the machine has ended; nothing follows. Halted says that a
	// message ended it; Item and Err are the message and its last error.
	Done struct {
		Halted bool
		Item   *Item
		Reason semel.Reason
		Err    error
		// Idle says that it ended because of IdleExit or the source's end.
		Idle bool
		// Behind, with Idle, are the lanes of which something is left. Full says
		// that it left no room to fetch more.
		Behind []Behind
		Full   bool
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
	// ReportBudget: retries are more than their budget; one that is planned now
	// begins in Wait.
	ReportBudget
	// ReportTrial: N attempts in a row have failed, the last of them of Item; one
	// message is tried at a time.
	ReportTrial
	// ReportTrialEnds: one has succeeded.
	ReportTrialEnds
	// ReportBusy: the item has waited for Wait for a copy of it that is in
	// flight elsewhere.
	ReportBusy
	// ReportWaits: for Wait, the item has met nothing but what others hold or
	// do, and nobody is charged.
	ReportWaits
	// ReportNewer: the item has waited for Wait, because a newer release wrote
	// its marker.
	ReportNewer
	// ReportNewerEnds: it no longer does, or is gone.
	ReportNewerEnds
	// ReportFull: N messages, which a newer release marked or which wait for those,
	// leave no room, so that nothing is fetched.
	ReportFull
	// ReportFullEnds: there is room again.
	ReportFullEnds
	// ReportClaimLost: the item's claim does not stand any more: another worker, or
	// a person, has its row.
	ReportClaimLost
)

// String is the report's name.
func (k ReportKind) String() string {
	return enum.Name([]string{
		ReportRetry: "retry", ReportReady: "ready", ReportNotReady: "not ready", ReportUnknown: "unknown", ReportStuck: "stuck", ReportBackstop: "backstop",
		ReportCommitted: "committed", ReportContended: "contended", ReportSerial: "serial", ReportParallel: "parallel", ReportBudget: "budget",
		ReportTrial: "trial", ReportTrialEnds: "trial ends", ReportBusy: "busy", ReportWaits: "waits", ReportNewer: "newer", ReportNewerEnds: "newer ends",
		ReportFull: "full", ReportFullEnds: "full ends", ReportClaimLost: "claim lost",
	}, k, "ReportKind")
}

func (Fetch) action()       {}
func (CancelFetch) action() {}
func (Begin) action()       {}
func (Run) action()         {}
func (StopRun) action()     {}
func (Commit) action()      {}
func (Rollback) action()    {}
func (Kill) action()        {}
func (*Settle) action()     {}
func (ClaimRows) action()   {}
func (Unclaim) action()     {}
func (Over) action()        {}
func (Flow) action()        {}
func (Release) action()     {}
func (Wake) action()        {}
func (Report) action()      {}
func (Done) action()        {}
