package machine

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/source"
)

// Action is a command to the shell. The types below implement it.
type Action interface{ action() }

// Row is an inbox row to write with a commit.
type Row struct {
	Entry    int
	Repeat   bool // count one more delivery on the existing row
	Conflict bool
	// As is AsParked, AsDiscarded, AsDeadLettered, AsReceived, AsWaiting or AsBlocked. For an item with a claim it
	// is how the claim ends, and may also be AsApplied, AsDuplicate or AsOverdue.
	As       As
	Reason   semel.Reason
	Attempts int
	// After, with AsWaiting and AsBlocked, is the delay until the row is due.
	After time.Duration
	First error
	Last  error
}

// Settlement is the ack, nack or dead letter of one item.
type Settlement struct {
	Item   *Item
	Kind   semel.SettleKind
	After  time.Duration
	Ending source.End
	Reason semel.Reason
	Err    error
	// Charged, with Nack, reports that the handler ran and failed.
	Charged bool
	// Attempts, with DeadLetter, is the number of times the handler ran.
	Attempts int
	// Again reports that an earlier Settle of the same item was not carried out.
	Again bool
}

// Behind is a lane with messages that a newer release marked, or that wait for such a message, when the run ends.
type Behind struct {
	Lane     source.Lane
	Messages int
	// Item is the first message that a newer release marked; nil if that message is in another lane. Why says what
	// is known about its marker.
	Item *Item
	Why  error
}

// The actions.
type (
	// Fetch calls the source's Fetch. There is one at a time; Fetched is its response.
	Fetch struct {
		Messages int
		Bytes    int64
	}
	// CancelFetch cancels a blocked Fetch, which still responds with Fetched. With Idle the run would end after
	// it, so Fetched must say whether the source has more. CancelFetch without Idle may follow one with Idle: the
	// run stops, and nobody needs that information any more.
	CancelFetch struct{ Idle bool }
	// Begin opens the flight's transaction with its marks; Marked is the response. Serial takes the consumer's
	// lock, so that the consumer has one batch at a time.
	Begin struct {
		Flight *Flight
		Serial bool
	}
	// Run runs the handlers of the entries Fresh, in order; Ran is the response.
	Run struct {
		Flight *Flight
		Fresh  []int
		Budget time.Duration
	}
	// StopRun lets the running handler finish and starts no other. With Abort its context is cancelled too.
	StopRun struct {
		Flight *Flight
		Abort  bool
	}
	// Commit commits the flight; Ended is the response.
	Commit struct {
		Flight *Flight
		Trim   []int
		Rows   []Row
	}
	// Rollback rolls the flight back; the response is Ended with NotCommitted.
	Rollback struct{ Flight *Flight }
	// Kill closes the flight's connection. The flight's handler still responds with Ran.
	Kill struct{ Flight *Flight }
	// Settle sends settlements to the broker; Settled is the response.
	Settle struct{ Items []Settlement }
	// Over reports how an item with a claim ended. Nothing is settled.
	Over struct{ Settlement }
	// ClaimRows claims due rows of the inbox. There is one at a time; Claimed is the response.
	ClaimRows struct {
		Messages int
		Bytes    int64
	}
	// Unclaim releases claims whose messages did not end; there is no response. Halted, one of Items or nil, is
	// the message that halts the consumer: its attempt, which failed with Err, is recorded.
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
	// Release is the response to Revoking, after the lane's last settlement.
	Release struct{ Lane source.Lane }
	// Wake asks for a Timer at a time; it replaces the last Wake.
	Wake struct{ At Time }
	// Report notifies observers of something other than a settlement. Part, with ReportReady and ReportNotReady,
	// is the part that works again or failed: store, source, broker, handler, inbox.
	Report struct {
		Kind ReportKind
		Item *Item // may be nil
		Wait time.Duration
		Part string
		Err  error
		N    int
	}
	// Done: the machine has ended, and no action follows. Halted reports that a message halted the consumer; Item
	// and Err are the message and its last error.
	Done struct {
		Halted bool
		Item   *Item
		Reason semel.Reason
		Err    error
		// Idle reports that the run ended because of IdleExit or the end of the source.
		Idle bool
		// Behind, with Idle, are the lanes with unsettled messages. Full reports that they left no memory to fetch
		// more.
		Behind []Behind
		Full   bool
	}
)

// ReportKind is the kind of a report.
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
	// ReportContended: a flight had a deadlock, a lock timeout or a serialization failure and runs again.
	ReportContended
	// ReportSerial: batches of this consumer run one at a time for Wait.
	ReportSerial
	// ReportParallel: batches run in parallel again.
	ReportParallel
	// ReportBudget: there are more retries than the budget allows; a retry that is planned now begins after Wait.
	ReportBudget
	// ReportTrial: N attempts in a row have failed, the last one for Item; one message is tried at a time.
	ReportTrial
	// ReportTrialEnds: an attempt has succeeded.
	ReportTrialEnds
	// ReportBusy: the item has waited for Wait for a copy that another process is processing.
	ReportBusy
	// ReportWaits: for Wait, the item has failed only because of others. No message is charged.
	ReportWaits
	// ReportNewer: the item has waited for Wait, because a newer release wrote its marker.
	ReportNewer
	// ReportNewerEnds: the item of ReportNewer no longer waits, or is gone.
	ReportNewerEnds
	// ReportFull: N messages that a newer release marked, or that wait for such messages, fill the memory, so that
	// nothing is fetched.
	ReportFull
	// ReportFullEnds: there is memory again.
	ReportFullEnds
	// ReportClaimLost: the item's claim is no longer valid, because another worker or an operator has its row.
	ReportClaimLost
)

// String returns the name of the report.
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
