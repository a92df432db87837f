package machine

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/enum"
	"github.com/semel-go/semel/source"
)

// Action is a command of the machine to the engine. Fetch, Begin, Run, Commit and so on implement Action.
type Action interface{ action() }

// Row is an inbox row that a commit writes.
type Row struct {
	Entry    int
	Repeat   bool // count a further delivery in the existing row
	Conflict bool
	// As is the state in which the row is written: AsParked, AsDiscarded, AsDeadLettered, AsReceived, AsWaiting or
	// AsBlocked. For a claimed row, As says how the claim ends, and may also be AsApplied, AsDuplicate or AsOverdue.
	As       As
	Reason   semel.Reason
	Attempts int
	// After is used with AsWaiting and AsBlocked, and is the time until the row is due.
	After time.Duration
	First error
	Last  error
}

// Settlement is the ack, nack or dead letter of one message.
type Settlement struct {
	Item   *Item
	Kind   semel.SettleKind
	After  time.Duration
	Ending source.End
	Reason semel.Reason
	Err    error
	// Charged is used with Nack. If Charged is true, the handler ran and failed, so that the delivery counts as an
	// attempt.
	Charged bool
	// Attempts is used with DeadLetter, and is the number of times the handler ran.
	Attempts int
	// Again reports that an earlier attempt to ack, nack or dead-letter the same item failed.
	Again bool
}

// Behind is a lane that still has messages when the run ends: messages that a newer release marked, and messages that
// wait for a marked message.
type Behind struct {
	Lane     source.Lane
	Messages int
	// The field Item is the first message that a newer release marked, or nil if that message is in another lane. Why
	// describes the marker of Item.
	Item *Item
	Why  error
}

type (
	// Fetch calls the source's Fetch. Only one Fetch runs at a time. The response is Fetched.
	Fetch struct {
		Messages int
		Bytes    int64
	}
	// CancelFetch cancels a blocked Fetch. The response to CancelFetch is still Fetched. Idle means that the run would
	// end after the Fetch, so Fetched must say whether the source has more messages. If the run is stopped, a
	// CancelFetch without Idle may follow, because the machine no longer needs that information.
	CancelFetch struct{ Idle bool }
	// Begin opens the batch's transaction and writes its markers. The response is Marked. Serial means that
	// the transaction takes the consumer's lock, so that only one batch of the consumer runs at a time.
	Begin struct {
		Flight *Flight
		Serial bool
	}
	// Run runs the handlers of the entries in Fresh, in order. The response is Ran.
	Run struct {
		Flight *Flight
		Fresh  []int
		Budget time.Duration
	}
	// StopRun lets the running handler finish and starts no further handler. If Abort is set, the handler's context is
	// also cancelled.
	StopRun struct {
		Flight *Flight
		Abort  bool
	}
	// Commit commits the batch. The response is Ended.
	Commit struct {
		Flight *Flight
		Trim   []int
		Rows   []Row
	}
	// Rollback rolls the batch back. The response to Rollback is Ended with NotCommitted.
	Rollback struct{ Flight *Flight }
	// Kill closes the batch's connection. Kill has no response of its own: the response to the batch's run, Ran, still
	// comes when the batch's handler returns.
	Kill struct{ Flight *Flight }
	// Settle passes acks, nacks and dead letters to the source. The response is Settled.
	Settle struct{ Items []Settlement }
	// Over reports how a claimed row ended. Over does not call the source.
	Over struct{ Settlement }
	// ClaimRows claims due rows of the inbox. Only one ClaimRows runs at a time. The response is Claimed.
	ClaimRows struct {
		Messages int
		Bytes    int64
	}
	// Unclaim releases claims of messages that did not end. Unclaim has no response. Halted, if not nil, is the item of
	// Items that stops the consumer; the attempt of this item failed with Err and is recorded.
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
	// Release reports that a lane is drained: it is the response to Revoking, after the last message of the lane was
	// acked or nacked.
	Release struct{ Lane source.Lane }
	// Wake asks for a Timer event at a time, and replaces the previous Wake.
	Wake struct{ At Time }
	// Report reports to observers an event other than the end of a message. Part is used with ReportReady and
	// ReportNotReady, and is the part that works again or has failed: store, source, broker, handler, inbox.
	Report struct {
		Kind ReportKind
		Item *Item // may be nil
		Wait time.Duration
		Part string
		Err  error
		N    int
	}
	// Done means that the machine has ended, and that no action follows. Halted reports that a message stopped the
	// consumer. Item and Err are the message that stopped the consumer and its last error.
	Done struct {
		Halted bool
		Item   *Item
		Reason semel.Reason
		Err    error
		// Idle reports that the run ended because of IdleExit or the end of the source.
		Idle bool
		// If Idle is true, Behind contains the lanes with messages that are not acked. Full reports that unacked
		// messages fill the memory, so that no further message could be fetched.
		Behind []Behind
		Full   bool
	}
)

// ReportKind is the kind of a Report.
type ReportKind uint8

const (
	ReportRetry ReportKind = iota + 1
	ReportReady
	ReportNotReady
	ReportUnknown
	ReportStuck
	ReportBackstop
	ReportCommitted
	// ReportContended means that a batch had a deadlock, a lock timeout or a serialization failure, and runs
	// again.
	ReportContended
	// ReportSerial means that batches of the consumer run one at a time for the duration Wait.
	ReportSerial
	// ReportParallel means that batches run in parallel again.
	ReportParallel
	// ReportBudget means that there are more retries than the budget allows. The next retries begin only after the
	// duration Wait.
	ReportBudget
	// ReportTrial means that N consecutive attempts have failed, the last one for Item. From now on, one message is
	// tried at a time.
	ReportTrial
	// ReportTrialEnds means that an attempt has succeeded.
	ReportTrialEnds
	// ReportBusy means that another process is processing a copy of Item, and that Item has waited for the
	// duration Wait.
	ReportBusy
	// ReportWaits means that Item has failed for the duration Wait, but only because of other transactions. Failures
	// because of other transactions do not count as attempts.
	ReportWaits
	// ReportNewer means that a newer release wrote the marker of Item, and that Item has waited for the
	// duration Wait.
	ReportNewer
	// ReportNewerEnds means that an Item with an earlier ReportNewer no longer waits, or was dropped.
	ReportNewerEnds
	// ReportFull means that nothing is fetched, because the memory is full. N messages in memory wait for a process of
	// a newer release: this release has already marked these messages, or messages before them.
	ReportFull
	// ReportFullEnds means that there is free memory again.
	ReportFullEnds
	// ReportClaimLost means that the claim of Item is no longer valid, because another process has claimed
	// its row or an operator has changed the row.
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
